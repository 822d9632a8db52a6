"""Ask the model's server which models it has, and the model for one answer; for `hachi doctor` and `hachi
setup`."""

import re
import time
from typing import TYPE_CHECKING

from agent.errors import SettingsError
from memory.errors import MemoryFault

if TYPE_CHECKING:
    from agent.settings import Settings

LIST_SECONDS = 5.0
"""Seconds that a server may take to list its models."""


async def model_listed(settings: "Settings") -> str:
    """Return what the server says about the model. Raises SettingsError if the server does not list it."""
    if file := settings.model_file:
        size = f"{file.stat().st_size / 1e6:,.1f} MB"
        return f"{settings.chosen_model}; {file}, {size}, is served from the first call on"
    names = dict.fromkeys(filter(None, (settings.chosen_model, settings.consolidate_model)))
    import openai

    from agent.models.choice.providers import base_url_of
    from agent.models.failures import model_error
    from agent.models.wire.fit import ask_about

    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else "none"
    details = [" and ".join(names)]
    async with openai.AsyncOpenAI(api_key=key, base_url=base_url_of(settings), max_retries=0) as client:
        try:
            for name in names:
                about = await ask_about(client, name, LIST_SECONDS)
                details += [str(about)] if str(about) and len(details) == 1 else []
                if not about.listed:
                    shown = ", ".join(about.models[:5]) or "none"
                    raise SettingsError(f"the server does not list {name}, but {shown}; check HACHI_MODEL")
        except openai.NotFoundError as error:
            if isinstance(error.body, str):
                raise SettingsError("there is no API at this URL; does OPENAI_BASE_URL lack /v1?") from error
            return f"{details[0]}; the server answers, but has no list of models"
        except openai.OpenAIError as error:
            raise model_error(error, settings) or error from error
    return "; ".join(details)


async def second_model_listed(settings: "Settings") -> str:
    from agent.models.choice.providers import base_url_of
    from agent.models.choice.registry import fallback_settings

    second = fallback_settings(settings)
    assert second is not None
    where = mask(base_url_of(second)) or (f"{second.model_file.parent}" if second.model_file else "OpenAI")
    return f"{await model_listed(second)} at {where}"


def mask(text: str | None) -> str | None:
    """Hide the name, password and query of an address. A SecretStr masks itself."""
    text = text and re.sub(r"(?<=://)[^\s@?]*@", "…@", text)
    return text and re.sub(r"(://[^\s?]*\?)\S+", r"\1…", text)


async def call_model(settings: "Settings") -> str:
    """Call the model once."""
    import openai
    from agents.exceptions import AgentsException

    from agent.models.ask import ask
    from agent.models.choice.choose import choose_model
    from agent.models.failures import model_error

    chosen, began = choose_model(settings), time.monotonic()
    try:
        text = await ask(chosen, "doctor", "Greet me in one short sentence.")
    except (openai.OpenAIError, AgentsException) as error:
        raise model_error(error, settings) or MemoryFault(str(error)) from error
    finally:
        await chosen.close()
    took = f"{time.monotonic() - began:.1f} s"
    if not text.strip():
        raise MemoryFault(f"nothing in {took}")
    return f"answered in {took}"
