"""Ask in `hachi setup` for the model with its server and key, then for the bot with its tokens and its
people. One call tests the answers."""

import asyncio
from functools import partial
from importlib.resources import files
from urllib.parse import urlsplit

import openai

from agent.errors import BadInput
from agent.models.choice.providers import PROVIDERS, base_url_of, provider_of
from agent.models.wire.fit import ask_about
from agent.settings import DEFAULT_MODEL, Settings, variable_of
from agent.surfaces.cli.operate.model_checks import call_model
from agent.surfaces.cli.operate.servers import discord_access, slack_access
from agent.surfaces.cli.operate.setup.dialogue import Dialogue
from agent.surfaces.cli.output import plain
from agent.types.model_address import names_file

SECONDS = 2.0
"""How long a server may take to list its models."""
HERE = {
    name: str(provider.base_url)
    for name, provider in PROVIDERS.items()
    if urlsplit(provider.base_url or "").hostname == "127.0.0.1"
}
"""Providers that run on the person's own machine, with their default addresses."""
WITH_KEY = [name for name, provider in PROVIDERS.items() if provider.needs_key]
OURSELVES = ("hachi",)
"""Names of models to skip: `hachi serve` lists this one, on vLLM's port."""
BOTS = ("discord", "slack")
STEPS = {
    "discord": """\
1. Open https://discord.com/developers/applications, New Application, give it a name, Create.
2. On its page Bot, under Privileged Gateway Intents, switch on Message Content Intent, and save.
3. On the same page: Reset Token, Copy.""",
    "slack": """\
1. Open https://api.slack.com/apps, Create New App, From a manifest, pick your workspace, choose YAML, and
   paste what stands above.
2. Install App, Install to your workspace, Allow. The Bot User OAuth Token is the bot's token.
3. Basic Information, App-Level Tokens, Generate Token and Scopes: any name, the scope connections:write,
   Generate. That is the app's token.""",
}
TOKENS = {
    "discord_token": "The bot's token",
    "slack_bot_token": "The bot's token, xoxb-…",
    "slack_app_token": "The app's token, xapp-…",
}
WHO = {
    "discord_servers": "Only in these servers (ids with commas; empty is all that it is in)",
    "discord_channels": "Only in these channels (ids; empty is all that it sees)",
    "discord_roles": "Only for people with one of these roles (ids; empty is everybody)",
    "bot_daily_turns": "Turns a day for one person (0 is any number)",
}


async def ask_for_model(talk: Dialogue) -> None:
    """Ask until a call succeeds, or the person keeps settings that failed. Raises HachiError without a
    terminal."""
    asks_for_key = False
    while (server := await _ask_for_server(talk)) != "none":
        if not names_file(server):
            await _ask_for_key(talk, asks_for_key)
            await _ask_for_name(talk, server)
        if await talk.works(call_model):
            return
        asks_for_key = True  # because some servers list their models without a key


def server_of(settings: Settings) -> str:
    """Return a name for the server in these settings: its base URL, a provider, a file or `none`."""
    if settings.model_file:
        return str(settings.model)
    return "none" if settings.offline else settings.openai_base_url or settings.provider or "openai"


async def models_at(url: str | None, key: str = "") -> tuple[str, ...] | None:
    """Return the names of a server's models; empty if it wants another key. None if there is no API."""
    try:
        async with openai.AsyncOpenAI(api_key=key or "none", base_url=url, max_retries=0) as client:
            models = (await ask_about(client, "", SECONDS)).models
            return None if models == OURSELVES else models
    except (openai.AuthenticationError, openai.PermissionDeniedError):
        return ()
    except (openai.OpenAIError, ValueError):
        return None


async def _ask_for_server(talk: Dialogue) -> str:
    """Ask where the model is. If the server changes, the current key and model are dropped."""
    today, choices = server_of(talk.settings()), [*WITH_KEY, "none"]
    if talk.typed:
        found = dict(zip(HERE, await asyncio.gather(*map(models_at, HERE.values())), strict=True))
        here = {
            HERE[name]: f"{name} at {HERE[name]}: {', '.join(models[:5]) or 'it asks for a key'}"
            for name, models in found.items()
            if models is not None
        }
        choices = [*here, *WITH_KEY, "none"]
        labels = [*here.values(), *(f"{name}, with a key" for name in WITH_KEY), "none: the small stand-in"]
        print(
            "Which model shall answer? A number, a base URL, the path of a GGUF file, or a provider's name."
        )
        for number, label in enumerate(labels, 1):
            print(f"  {number}  {plain(label)}")

    def read(text: str) -> str:
        name = choices[int(text) - 1] if text.isdecimal() and 0 < int(text) <= len(choices) else text
        name = name.lower() if name.lower() in (*PROVIDERS, "none") else name
        if "://" in name:
            talk.settings(openai_base_url=name)  # raises for an invalid URL
        elif not (name in PROVIDERS or name == "none" or names_file(name)):
            names = ", ".join((*PROVIDERS, "none"))
            raise BadInput(
                f"{text!r} is no server; give one of {names}, or a URL such as http://127.0.0.1:8080/v1"
            )
        return name

    server: str = await talk.ask("provider", "Server", read, today=today)
    if server != today:
        talk.changes |= {"provider": None, "openai_base_url": None, "openai_api_key": None, "model": None}
        if names_file(server):
            talk.changes["model"] = server
        elif server in PROVIDERS:
            talk.changes["provider"] = server
        elif server != "none":
            talk.changes["openai_base_url"] = await _with_path(server)
    return server


async def _with_path(url: str) -> str:
    """Return the URL with /v1 if the API answers only there."""
    longer = f"{url.rstrip('/')}/v1"
    return longer if await models_at(url) is None and await models_at(longer) is not None else url


async def _ask_for_key(talk: Dialogue, always: bool) -> None:
    settings = talk.settings()
    needed = provider_of(settings).needs_key
    asked = always or needed or talk.answers("openai_api_key") or settings.openai_api_key
    if not asked and await models_at(base_url_of(settings)):
        return

    def valid(changed: Settings) -> None:
        if needed and not changed.openai_api_key:
            raise BadInput(
                "this server needs a key; copy it from the provider's page, or take another server"
            )

    await talk.set("openai_api_key", "Its key" if needed else "Its key, if any", valid, secret=True)


async def _ask_for_name(talk: Dialogue, server: str) -> None:
    name = DEFAULT_MODEL if server == "openai" else ""
    if not name:
        listed = await models_at(base_url_of(talk.settings()), talk.value("openai_api_key")) or ()
        name = listed[0] if listed and (talk.typed or len(listed) == 1) else ""
    await talk.set("model", "Model", lambda changed: changed.chosen_model, default=name)


async def ask_for_bot(talk: Dialogue) -> list[str]:
    """Return the names of the bots that are configured. Raises HachiError without a terminal."""
    today = next((bot for bot in BOTS if talk.value(_tokens(bot)[0])), "none")

    def read(text: str) -> list[str]:
        text = text.lower()
        if text not in (*BOTS, "none"):
            raise BadInput(f"{text!r} is no bot; give discord, slack or none")
        return [text] if text in BOTS else []

    bots = [bot for bot in BOTS if any(map(talk.answers, _tokens(bot)))]
    if not bots or talk.answers("bot"):
        bots = await talk.ask("bot", "Be a bot, too? discord, slack or none", read, today=today)
    for bot in bots:
        await _ask_for_tokens(talk, bot)
    for name, question in WHO.items():
        if talk.answers(name) or (bots and name == "bot_daily_turns") or "discord" in bots:
            await talk.set(name, question)
    return bots


def _tokens(bot: str) -> list[str]:
    return [name for name in TOKENS if name.startswith(bot)]


async def _ask_for_tokens(talk: Dialogue, bot: str) -> None:
    if not all(map(talk.value, _tokens(bot))):
        if bot == "slack":
            print(files("agent.surfaces.bots.slack").joinpath("manifest.yaml").read_text("utf-8"))
        print(STEPS[bot])
    while True:
        for name in _tokens(bot):

            def valid(changed: Settings, name: str = name) -> None:
                if not getattr(changed, name):
                    raise BadInput(f"{variable_of(name)} is missing: {TOKENS[name]}")

            await talk.set(name, TOKENS[name], valid, secret=True)
        if await talk.works(slack_access if bot == "slack" else partial(discord_access, inviting=True)):
            return
