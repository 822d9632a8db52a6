"""`hachi setup`: ask for the first settings at a terminal, or read them from options."""

import inspect
from typing import Annotated

import typer

from agent.errors import BadInput
from agent.surfaces.cli.output import interactive
from agent.surfaces.cli.session import Session, require, with_parameters, with_session

OPTIONS = {
    "provider": ("--provider", "NAME|URL|FILE", "The model's server or provider; `none` is the stand-in."),
    "openai_api_key": ("--key", None, "The server's key. As a key or token, - reads a line of stdin."),
    "model": ("--model", "NAME", "The model, or the path of its file."),
    "bot": ("--bot", "discord|slack|none", "The bot to set up."),
    "discord_token": ("--discord-token", None, "The bot's token on Discord."),
    "slack_bot_token": ("--slack-bot-token", None, "The bot's token on Slack, xoxb-…."),
    "slack_app_token": ("--slack-app-token", None, "The app's token on Slack, xapp-…."),
    "discord_servers": ("--servers", "IDS", "Discord's servers where the bot answers."),
    "discord_channels": ("--channels", "IDS", "The channels where the bot answers."),
    "discord_roles": ("--roles", "IDS", "The roles that may use the bot."),
    "bot_daily_turns": ("--daily-turns", "N", "Turns a day for one person."),
}
"""The options, by the question that each answers."""


async def setup(_: Session, **options: str | None) -> None:
    """Choose the model, the bot and who may use it.

    At a terminal it asks for everything that no option sets. Run it again at any time: settings that you do
    not change stay.
    """
    answers = {name: value for name, value in options.items() if value is not None}
    typed = interactive()
    require(
        typed or bool(answers), "without a terminal, options answer, such as --provider ollama --model NAME"
    )
    from agent.settings import Settings, variable_of
    from agent.surfaces.cli.operate.setup.dialogue import Dialogue, path_of, write
    from agent.surfaces.cli.operate.setup.questions import ask_for_bot, ask_for_model

    path = path_of(Settings.load())
    talk = Dialogue(answers, typed=typed)
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
    write(path, talk.changes)
    print("Talk to it: " + ", ".join(f"hachi {surface}" for surface in ("chat", *bots)))


def _parameter(field: str, name: str, metavar: str | None, help: str) -> inspect.Parameter:
    kind = Annotated[str | None, typer.Option(name, metavar=metavar, help=help)]
    return inspect.Parameter(field, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)


_session = inspect.signature(setup).parameters["_"]
_options = [_parameter(field, *option) for field, option in OPTIONS.items()]
setup = with_session(with_parameters(setup, setup, [_session, *_options]))
