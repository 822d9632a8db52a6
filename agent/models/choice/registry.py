"""The models of a companion. Each is chosen on first use, because the Agents SDK takes seconds to import."""

import asyncio
import importlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agent.errors import BadInput
from agent.models.choice.providers import base_url_of, reports_its_limits
from agent.settings import Settings
from agent.types.model_address import ModelAddress, names_file
from memory.process.breaker import Breaker

if TYPE_CHECKING:
    from agents.models.interface import Model

    from agent.models.choice.choose import ChosenModel
    from memory.facts.similar import Doubt

ABOUT_SECONDS = 2.0
"""Seconds for asking a server about itself, before the first turn."""


@dataclass
class Models:
    """The models of a companion, chosen on first use."""

    settings: Settings
    brought: "Model | None"
    """Replaces the model that the settings name."""
    brought_for_consolidation: "Model | None"
    breakers: Mapping[str, Breaker]
    """By the name of what they guard."""
    _answering: "ChosenModel | None" = None
    _consolidating: "ChosenModel | None" = None

    @property
    def has_consolidation_model(self) -> bool:
        """Return whether a real model consolidates. The offline stand-in does not consolidate or rule on
        facts."""
        return (
            self.brought_for_consolidation is not None
            or self.brought is not None
            or not self.settings.offline
        )

    @property
    def consolidates(self) -> bool:
        """Return whether a model consolidates conversations. The caller's own model does so only if the
        settings say so."""
        usual = "model" if self.brought is None or self.brought_for_consolidation is not None else "plain"
        return self.has_consolidation_model and (self.settings.consolidate or usual) == "model"

    @property
    def judges(self) -> bool:
        """Return whether a model rules on facts. If none consolidates, only if the settings say so."""
        explicit = "judge" in self.settings.model_fields_set
        return self.settings.judge and (self.consolidates or (explicit and self.has_consolidation_model))

    def choose(self) -> "ChosenModel":
        """Return a newly opened answering model, which the caller closes."""
        from agent.models.choice.choose import brought_model, choose_model

        if self.brought is not None:
            return self._with_fallback(brought_model(self.brought, self.breakers["model"], self.settings))
        return self._with_fallback(choose_model(self.settings, self.breakers["model"]))

    def _with_fallback(self, first: "ChosenModel", *, consolidates: bool = False) -> "ChosenModel":
        """Return the model with the settings' second one as its fallback. Raises SettingsError."""
        from agent.models.choice.choose import choose_model

        settings = fallback_settings(self.settings, brought=first.brought)
        if settings is None:
            return first
        neighbour = self._answering and self._answering.fallback
        second = choose_model(settings, self.breakers["fallback model"], neighbour, consolidates=consolidates)
        if second.name == first.name:  # so that the trace distinguishes them
            where = urlsplit(base_url_of(settings) or "").netloc.rpartition("@")[2]
            second = replace(second, name=f"{second.name}@{where or 'openai'}")
        return replace(first, fallback=second)

    async def answering(self) -> "ChosenModel":
        await load("agent.models.choice.choose")
        if self._answering is None:
            self._answering = chosen = self.choose()
            models = (chosen, chosen.fallback) if chosen.fallback else (chosen,)
            await asyncio.gather(*(_ask_about(one, one.source) for one in models))
        return self._answering

    async def named(self, model: "str | Model", settings: Settings) -> "ChosenModel":
        """Return another model for one turn: one of this name at the same server, or the caller's object.
        Raises BadInput."""
        answering = await self.answering()
        from agent.models.choice.choose import brought_model, choose_model

        if not isinstance(model, str):
            if not hasattr(model, "get_response"):
                raise BadInput(f"model: {model!r} is neither a name nor a model of the Agents SDK")
            return self._with_fallback(brought_model(model, settings=settings))
        from_file = settings.model_file or self.settings.model_file
        if self.brought is not None or settings.offline or from_file or not model.strip():
            raise BadInput(f"model: {model!r} cannot be named, since the settings name no server of models")
        return self._with_fallback(choose_model(settings, self.breakers["model"], answering))

    async def consolidating(self) -> "ChosenModel":
        """Return the model that consolidates: the answering one unless another is named. It
        has a breaker of its own, since long requests may fail where short ones are answered."""
        answering = await self.answering()
        from agent.models.choice.choose import brought_model, choose_model

        if self._consolidating is None:
            brought, settings = self.brought_for_consolidation or self.brought, self.consolidation_settings
            first = (
                brought_model(brought, self.breakers["consolidation model"], settings)
                if brought
                else choose_model(
                    settings, self.breakers["consolidation model"], answering, consolidates=True
                )
            )
            self._consolidating = self._with_fallback(first, consolidates=True)
            await _ask_about(first, settings)
        return self._consolidating

    @property
    def consolidation_settings(self) -> Settings:
        """Return the settings with the consolidation model as the model. A model file serves for both."""
        if self.settings.model_file:
            return self.settings
        model = self.settings.consolidate_model or self.settings.model
        return self.settings.model_copy(update={"model": model})

    async def close(self) -> None:
        if self._answering is not None:  # the consolidating model shares its client
            await self._answering.close()

    async def judge(self, doubts: "Sequence[Doubt]") -> list[bool]:
        """Return for each pair of facts whether the newer one replaces the older one."""
        await load("agent.models.ask")
        from agent.models.ask import judge

        return await judge(await self.consolidating(), doubts)


async def _ask_about(chosen: "ChosenModel", settings: Settings) -> None:
    """Ask a server on this machine for its window and slots, if its kind reports them."""
    if chosen.client is None or not reports_its_limits(settings):
        return
    import openai
    from agents.exceptions import AgentsException

    from agent.models.wire.fit import ask_about

    with suppress(openai.OpenAIError, AgentsException):  # the first call will report the failure
        about = await ask_about(chosen.client, chosen.name, ABOUT_SECONDS)
        if chosen.fit:
            chosen.fit.learn(about.window, about.tools, sees=about.sees and settings.images is None)
        if about.slots and chosen.slots and settings.model_slots is None:
            chosen.slots.become(about.slots)


async def load(module: str) -> None:
    """Import a slow module in a thread."""
    await asyncio.to_thread(importlib.import_module, module)


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
def _settings_class(model: str, key: str = Settings.key_variable) -> type[Settings]:
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
    second = _settings_class("HACHI_FALLBACK_MODEL").model_construct(**fields)
    if settings.offline and not (base_url or provider or second.model_file):
        return None
    same = base_url_of(second) == base_url_of(settings) and not settings.model_file
    if settings.fallback_key is None and same:
        return second
    with_key = _settings_class("HACHI_FALLBACK_MODEL", "HACHI_FALLBACK_KEY")
    return with_key.model_construct(**fields | {"openai_api_key": settings.fallback_key})


def remote_models(settings: Settings) -> list[Settings]:
    """Return the settings of each model that is neither a file on this machine nor the stand-in."""
    models = [settings, second] if (second := fallback_settings(settings)) else [settings]
    return [one for one in models if not (one.offline or one.model_file)]
