"""The settings of the second model, which answers while the first does not."""

from functools import cache

from agent.models.choice.providers import base_url_of
from agent.settings import Settings
from agent.types.model_address import ModelAddress, names_file

_OF_THE_SERVER = (
    "openai_base_url",
    "provider",
    "api",
    "structured",
    "images",
    "answer_tokens",
    "context_tokens",
)
"""Settings that hold only for the first model's server."""


@cache
def _settings_of(model: str, key: str = Settings.key_variable) -> type[Settings]:
    """Return a settings class whose errors name these variables. To make it takes 15 ms."""

    class SecondSettings(Settings):
        model_variable = model
        key_variable = key

    return SecondSettings


def fallback_settings(settings: Settings, *, brought: bool = False) -> Settings | None:
    """Return the settings with the second model as the model; None without a second model. The stand-in has
    none, unless the program passed its own first model (`brought`). The first server's key goes to no other
    server."""
    if settings.fallback_model is None or (settings.offline and not brought):
        return None
    name, base_url, provider = ModelAddress.parse(settings.fallback_model)
    fields = dict(settings) | {"model": name, "consolidate_model": None, "fallback_model": None}
    if base_url or provider or names_file(name) or settings.model_file:
        fields |= dict.fromkeys(_OF_THE_SERVER) | {"openai_base_url": base_url, "provider": provider}
    second = _settings_of("HACHI_FALLBACK_MODEL").model_construct(**fields)
    if settings.offline and not (base_url or provider or second.model_file):
        return None
    same = base_url_of(second) == base_url_of(settings) and not settings.model_file
    if settings.fallback_key is None and same:
        return second
    other_key = _settings_of("HACHI_FALLBACK_MODEL", "HACHI_FALLBACK_KEY")
    return other_key.model_construct(**fields | {"openai_api_key": settings.fallback_key})


def asked_elsewhere(settings: Settings) -> list[Settings]:
    """Return the settings of each model that is neither a file on this machine nor the stand-in."""
    asked = [settings, second] if (second := fallback_settings(settings)) else [settings]
    return [one for one in asked if not (one.offline or one.model_file)]
