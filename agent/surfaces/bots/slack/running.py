"""Running the bot until it is told to stop; and what Slack's refusals mean."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_sdk.errors import SlackApiError

from agent.errors import HachiError, SettingsError
from agent.settings import Settings
from agent.surfaces.bots.slack.app import HachiOnSlack
from agent.surfaces.bots.slack.events import user_name
from agent.surfaces.bots.slack.people import FAULTS
from agent.surfaces.bots.slack.reminding import Reminding
from agent.surfaces.bots.stopping import stopping

if TYPE_CHECKING:
    from agent.companion import Companion

PATH = "/slack/events"
"""Where events, commands and buttons come in by HTTP."""
PING_EVERY = 5.0
"""Seconds; a connection that is gone is noticed after as long, and made anew."""
APPS = "https://api.slack.com/apps"
NO_BOT_TOKEN = "set SLACK_BOT_TOKEN to the bot's token (xoxb-…); docs/slack.md shows where it comes from"
NO_APP_TOKEN = (
    "set SLACK_APP_TOKEN to the app's token (xapp-…) for Socket Mode, or give --http PORT; see docs/slack.md"
)
NO_SECRET = "set SLACK_SIGNING_SECRET to the app's signing secret; docs/slack.md shows where it comes from"
_REFUSED = frozenset(
    (
        "invalid_auth",
        "not_authed",
        "account_inactive",
        "token_revoked",
        "token_expired",
        "not_allowed_token_type",
        "missing_scope",
        "no_permission",
    )
)


def check(settings: Settings, *, http: bool) -> None:
    """Raises SettingsError where a token is missing."""
    if settings.slack_bot_token is None:
        raise SettingsError(NO_BOT_TOKEN)
    if http and settings.slack_signing_secret is None:
        raise SettingsError(NO_SECRET)
    if not http and settings.slack_app_token is None:
        raise SettingsError(NO_APP_TOKEN)


async def run(
    pet: "Companion", settings: Settings, say: Callable[[str], None], http: tuple[str, int] | None = None
) -> None:
    """Until SIGTERM or Ctrl-C: in Socket Mode, or by HTTP at this address and port. Raises SettingsError
    where Slack will not have it as it is, HachiError where Slack cannot be reached."""
    check(settings, http=http is not None)
    bot = HachiOnSlack(pet, settings)
    stop = asyncio.Event()
    with stopping(stop):
        try:
            async with listening(bot, http) as where:
                say(f"{where}; Ctrl-C stops")
                await stop.wait()
        finally:
            await bot.stop()


@asynccontextmanager
async def listening(bot: HachiOnSlack, http: tuple[str, int] | None = None) -> AsyncIterator[str]:
    """Events come in for as long as the block lasts; gives what to tell of it."""
    try:
        me = await bot.client.auth_test()
    except FAULTS as error:
        raise _meant(error, "SLACK_BOT_TOKEN", "the bot's token from OAuth & Permissions") from error
    name = f"on Slack in {me.get('team')} as {me.get('user')}"
    async with AsyncExitStack() as leaving:
        if http is not None:
            address = await leaving.enter_async_context(_by_http(bot, *http))
            where = f"{name}, waiting for events at {address}"
        else:
            await leaving.enter_async_context(_by_socket(bot))
            where = f"{name}, in Socket Mode"
        theirs = user_name(str(me.get("team_id")), "")  # of this workspace; others have bots of their own
        leaving.callback(bot.pet.reminders.register(theirs, Reminding(bot.client).send))
        yield where


@asynccontextmanager
async def _by_socket(bot: HachiOnSlack) -> AsyncIterator[None]:
    token = bot.settings.slack_app_token
    secret = token.get_secret_value() if token else ""
    handler = AsyncSocketModeHandler(bot.app, secret, ping_interval=PING_EVERY)
    try:
        try:
            handler.client.wss_uri = await handler.client.issue_new_wss_url()
        except FAULTS as error:
            what = "an app-level token with connections:write from Basic Information"
            raise _meant(error, "SLACK_APP_TOKEN", what) from error
        await handler.connect_async()  # type: ignore[no-untyped-call]
        yield
    finally:
        await handler.close_async()  # type: ignore[no-untyped-call]


@asynccontextmanager
async def _by_http(bot: HachiOnSlack, host: str, port: int) -> AsyncIterator[str]:
    runner = web.AppRunner(bot.app.web_app(PATH))
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        address, found, *_ = runner.addresses[0]
        yield f"http://{address}:{found}{PATH}"
    finally:
        await runner.cleanup()


def _meant(error: Exception, variable: str, what: str) -> HachiError:
    said = error.response.get("error") if isinstance(error, SlackApiError) else None
    if said in _REFUSED:
        return SettingsError(f"Slack refuses {variable} ({said}); copy {what} at {APPS}")
    return HachiError(f"Slack cannot be reached ({said or error or type(error).__name__})")
