"""Ask for the model in `hachi setup`: its server, key and name. One call tests the answers."""

import asyncio
from urllib.parse import urlsplit

import openai

from agent.errors import BadInput
from agent.models.choice.providers import PROVIDERS, base_url_of, provider_of
from agent.models.wire.fit import ask_about
from agent.settings import DEFAULT_MODEL, Settings
from agent.surfaces.cli.operate.model_checks import call_model
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
