"""Choose the language model that the settings name, and make its client."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import openai
from agents import ModelSettings
from agents.models.interface import Model
from agents.tracing import set_trace_provider
from agents.tracing import setup as tracing_setup
from agents.tracing.provider import DefaultTraceProvider

from agent.errors import SettingsError
from agent.models.breaker_model import BreakerModel, Slots
from agent.models.choice.providers import (
    api_of,
    base_url_of,
    is_local,
    may_see,
    provider_of,
    schema_beside_tools,
    sees_images,
    structured_of,
)
from agent.models.failures import server_fault
from agent.models.offline import OfflineModel
from agent.models.pictures import put_pictures
from agent.models.wire.fit import Fit
from agent.models.wire.model import WireModel
from agent.settings import Settings
from memory.process.breaker import Breaker

MANY = 1_000_000
LOCAL_ANSWER_TOKENS, LOCAL_CONSOLIDATE_TOKENS = 1_000, 1_500
"""Tokens of an answer on this machine, unless settings limit it: small models may write without end."""


@dataclass(frozen=True)
class ChosenModel:
    name: str
    model: Model
    structured: str
    """`schema`, `object` or `none`; see `Settings.structured`."""
    settings: ModelSettings
    breaker: Breaker
    source: Settings
    """The settings that name the model and its server."""
    schema_beside_tools: bool = False
    """Whether calls that offer tools also request a schema."""
    bounded: bool = False
    """Whether the server enforces the bounds of a schema."""
    client: openai.AsyncOpenAI | None = None
    slots: Slots | None = None
    """The slots of its server, shared like the client by all models there."""
    brought: bool = False
    """Whether it is a model object that the program passed."""
    fit: Fit | None = None
    """What was learned about the server, such as its window."""
    retries: int = 0
    """How often a failed call is retried."""
    fallback: "ChosenModel | None" = None
    """The second model, for when this one does not answer; see `agent/models/choice/fallback.py`."""

    @property
    def sees(self) -> bool:
        """Whether it may get images, as far as that is known."""
        return self.fit.sees if self.fit else bool(self.source.images)

    @property
    def takes_pictures(self) -> bool:
        """Whether the model is known to see images, from the settings or from a server on this machine. Only
        then does it get a client's images."""
        return sees_images(self.source) or (self.sees and is_local(self.source))

    async def close(self) -> None:
        for client in (self.client, self.fallback and self.fallback.client):
            if client is not None:
                await client.close()


def disable_trace_export() -> None:
    """Install a trace provider that exports nothing, unless the program has set its own.

    The SDK's default provider, created with the first span, exports to OpenAI.
    """
    if tracing_setup.GLOBAL_TRACE_PROVIDER is None:
        set_trace_provider(DefaultTraceProvider())


def brought_model(
    model: Model, breaker: Breaker | None = None, settings: Settings | None = None
) -> ChosenModel:
    """Wrap a model object that the caller provides."""
    disable_trace_export()
    breaker = breaker or Breaker("model")
    guarded = BreakerModel(model, breaker, lambda error: server_fault(error, None))
    calls = ModelSettings(store=False)
    settings = settings or Settings.model_construct()
    return ChosenModel(type(model).__name__, guarded, "none", calls, breaker, settings, brought=True)


def choose_model(
    settings: Settings,
    breaker: Breaker | None = None,
    neighbour: ChosenModel | None = None,
    *,
    consolidates: bool = False,
) -> ChosenModel:
    """Return the model that the settings name, for answers or for consolidation. It shares the client and the
    slots of its `neighbour`, a model of the same server. Raises SettingsError."""
    disable_trace_export()
    breaker = breaker or Breaker("model")
    if settings.offline:
        return ChosenModel("offline", OfflineModel(), "none", ModelSettings(), breaker, settings)
    name, api, provider = settings.chosen_model, api_of(settings), provider_of(settings)
    if provider.needs_key and settings.openai_api_key is None:
        raise SettingsError(f"{base_url_of(settings) or 'OpenAI'} needs a key: set {settings.key_variable}")
    limit = _limit(settings, consolidates)
    calls = ModelSettings(
        max_tokens=limit,
        # the companion does not depend on data that a provider stores
        store=False if provider.stores or api == "responses" else None,
        include_usage=True if provider.counts_streams else None,
        extra_args=_json_object_format(settings),
    )
    client, slots = neighbour and neighbour.client, neighbour and neighbour.slots
    client = client or _opened(settings)
    slots = slots or Slots(settings.model_slots or provider.slots or MANY)
    limit_name = provider.limit_name if api == "chat" else "max_output_tokens"
    fit = Fit(limit, limit_name, settings.context_tokens, may_see(settings), set(provider.refuses))
    model = BreakerModel(
        WireModel(name, client, api, fit),
        breaker,
        lambda error: server_fault(error, settings),
        settings.model_timeout,
        partial(slots.slot, for_people=not consolidates),
    )
    return ChosenModel(
        name,
        model,
        structured_of(settings),
        calls,
        breaker,
        settings,
        schema_beside_tools(settings),
        bounded=is_local(settings),
        client=client,
        slots=slots,
        fit=fit,
        retries=settings.model_retries,
    )


def _opened(settings: Settings) -> openai.AsyncOpenAI:
    if settings.model_file:
        from agent.models.local.server import LocalClient

        return LocalClient(settings.model_file, settings.context_tokens, settings.model_slots)
    return openai.AsyncOpenAI(
        # A local server needs no key, but the client requires a string.
        api_key=settings.openai_api_key.get_secret_value() if settings.openai_api_key else "none",
        base_url=base_url_of(settings),
        max_retries=0,  # a turn retries; retries in both would multiply
        http_client=openai.DefaultAsyncHttpxClient(event_hooks={"request": [put_pictures]}),
    )


def _limit(settings: Settings, consolidates: bool) -> int | None:
    """Return how many tokens an answer may have; None for no limit."""
    limit = None if consolidates else settings.answer_tokens
    if limit is None and is_local(settings):
        limit = LOCAL_CONSOLIDATE_TOKENS if consolidates else LOCAL_ANSWER_TOKENS
    return limit or None


def _json_object_format(settings: Settings) -> dict[str, Any] | None:
    """Return the request field for "any JSON object"; the SDK can only ask for a schema."""
    if structured_of(settings) != "object":
        return None
    form = {"type": "json_object"}
    return {"text": {"format": form}} if api_of(settings) == "responses" else {"response_format": form}
