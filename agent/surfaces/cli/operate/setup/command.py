"""`hachi setup`: ask for the first settings at a terminal, or read them from options."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from agent.errors import BadInput
from agent.surfaces.cli.output import interactive, say
from agent.surfaces.cli.session import Session, require, with_session

Text = str | None
Server = Annotated[
    Text,
    typer.Option(
        "--provider", metavar="NAME|URL|FILE", help="The model's server or provider; `none` is the stand-in."
    ),
]
Key = Annotated[
    Text, typer.Option("--key", help="The server's key. As a key or token, - reads a line of stdin.")
]
Model = Annotated[Text, typer.Option("--model", metavar="NAME", help="The model, or the path of its file.")]
Bot = Annotated[Text, typer.Option("--bot", metavar="discord|slack|none", help="The bot to set up.")]
Discord = Annotated[Text, typer.Option("--discord-token", help="The bot's token on Discord.")]
SlackBot = Annotated[Text, typer.Option("--slack-bot-token", help="The bot's token on Slack, xoxb-….")]
SlackApp = Annotated[Text, typer.Option("--slack-app-token", help="The app's token on Slack, xapp-….")]
Servers = Annotated[
    Text, typer.Option("--servers", metavar="IDS", help="Discord's servers where the bot answers.")
]
Channels = Annotated[
    Text, typer.Option("--channels", metavar="IDS", help="The channels where the bot answers.")
]
Roles = Annotated[Text, typer.Option("--roles", metavar="IDS", help="The roles that may use the bot.")]
Turns = Annotated[Text, typer.Option("--daily-turns", metavar="N", help="Turns a day for one person.")]


@with_session
async def setup(
    _: Session,
    *,
    provider: Server = None,
    openai_api_key: Key = None,
    model: Model = None,
    bot: Bot = None,
    discord_token: Discord = None,
    slack_bot_token: SlackBot = None,
    slack_app_token: SlackApp = None,
    discord_servers: Servers = None,
    discord_channels: Channels = None,
    discord_roles: Roles = None,
    bot_daily_turns: Turns = None,
) -> None:
    """Choose the model, the bot and who may use it.

    At a terminal it asks for everything that no option sets. Run it again at any time: settings that you do
    not change stay.
    """
    options = {name: value for name, value in locals().items() if isinstance(value, str)}
    typed = interactive()
    require(
        typed or bool(options), "without a terminal, options answer, such as --provider ollama --model NAME"
    )
    from agent.settings import Settings, variable_of
    from agent.surfaces.cli.operate.setup.bots import ask_for_bot
    from agent.surfaces.cli.operate.setup.dialogue import Dialogue
    from agent.surfaces.cli.operate.setup.env_file import path_of
    from agent.surfaces.cli.operate.setup.model import ask_for_model

    path = path_of(Settings.load())
    talk = Dialogue(options, typed=typed)
    if typed:
        print(f"Settings are written to {path} at the end; Ctrl-C leaves it as it is.")
        print("Enter takes what stands in brackets, - clears it.\n")
    if typed or any(map(talk.answers, ("provider", "openai_api_key", "model"))):
        await ask_for_model(talk)
    bots = await ask_for_bot(talk)
    if unused := ", ".join(map(variable_of, talk.unused)):
        raise BadInput(
            f"with these answers nothing asks for {unused}; --provider and --bot say what it is for"
        )
    _write(path, talk.changes)
    print("Talk to it: " + ", ".join(f"hachi {surface}" for surface in ("chat", *bots)))


def _write(path: Path, changes: Mapping[str, str | None]) -> None:
    from agent.settings import sources, variable_of
    from agent.surfaces.cli.operate.setup.env_file import write
    from agent.types.home_files import read_settings_file

    before = read_settings_file(path, required=False)
    values = {variable_of(field): value for field, value in changes.items()}
    values = {name: value for name, value in values.items() if value != before.get(name)}
    if values:
        write(path, values)
    else:
        say(f"nothing to change in {path}")
    read = sources()
    if elsewhere := [name for name in map(variable_of, changes) if read.get(name) == "environment"]:
        say(f"the environment sets {', '.join(elsewhere)}, too, and wins over the file")
