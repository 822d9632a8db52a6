"""`hachi slack`: the bot, until it is stopped."""

from typing import Annotated

import typer

from agent.errors import SettingsError
from agent.surfaces.cli.options import Host
from agent.surfaces.cli.output import say
from agent.surfaces.cli.session import Session, async_command

NO_EXTRA = "slack-bolt is not installed; run: pip install 'hachi[slack]'"


@async_command
async def slack(
    context: typer.Context,
    http: Annotated[
        int | None,
        typer.Option(
            "--http",
            min=0,
            max=65535,
            metavar="PORT",
            help="Take events by HTTP on this port, 0 for any that is free; Socket Mode unless said.",
        ),
    ] = None,
    host: Host = "127.0.0.1",
) -> None:
    """Be a bot on Slack."""
    session: Session = context.obj
    settings = session.settings()
    try:
        from agent.surfaces.bots.slack.running import check, run
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] in ("slack_bolt", "slack_sdk", "aiohttp"):
            raise SettingsError(NO_EXTRA) from error
        raise
    check(settings, http=http is not None)
    settings.chosen_model  # noqa: B018 - raises before anybody writes
    async with session.companion(upkeep=True) as pet:
        await run(pet, settings, say, None if http is None else (host, http))
