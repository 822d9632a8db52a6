"""Which language model answers, and what its faults mean."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import openai
from agents import ModelRetryBackoffSettings, ModelRetrySettings, ModelSettings
from agents.exceptions import AgentsException, ModelTimeoutError
from agents.models.interface import Model
from agents.retry import RetryPolicyContext
from agents.tracing import set_trace_provider
from agents.tracing import setup as tracing_setup
from agents.tracing.provider import DefaultTraceProvider

from agent.errors import ModelError, ModelRejected, ModelUnavailable
from agent.offline.model import OfflineModel
from agent.settings import Settings

if TYPE_CHECKING:
    import httpx2


WORTH_ANOTHER_TRY = frozenset({408, 429, 500, 502, 503, 504})
LONGEST_WAIT = 20.0
"""Seconds. A server that asks for more (Retry-After) is not waited for: somebody is waiting for the reply."""


@dataclass(frozen=True)
class ChosenModel:
    name: str
    model: Model
    structured: str
    """`schema`, `object` or `none`: see `Settings.structured`."""
    settings: ModelSettings
    client: openai.AsyncOpenAI | None = None

    async def close(self) -> None:
        if self.client is not None:
            await self.client.close()


def keep_traces_here() -> None:
    """Unless the program has a trace provider of its own: one that has nobody to tell. The SDK's default one,
    which is made when a span is first asked for, holds an exporter to OpenAI."""
    if tracing_setup.GLOBAL_TRACE_PROVIDER is None:
        set_trace_provider(DefaultTraceProvider())


def given_model(model: Model) -> ChosenModel:
    """A model that a caller brings."""
    keep_traces_here()
    return ChosenModel(type(model).__name__, model, "none", ModelSettings(store=False))


def choose_model(settings: Settings, http: "httpx2.AsyncClient | None" = None) -> ChosenModel:
    """The model the settings ask for. `http` lets a test answer in place of a server."""
    keep_traces_here()
    retry = ModelRetrySettings(
        max_retries=settings.model_retries,
        backoff=ModelRetryBackoffSettings(initial_delay=0.5, max_delay=8.0, multiplier=2.0, jitter=True),
        policy=_again,
    )
    if settings.offline:
        return ChosenModel("offline", OfflineModel(), "none", ModelSettings())
    name = settings.chosen_model
    calls = ModelSettings(
        store=False,  # nothing may depend on what a provider keeps
        include_usage=True,
        timeout=settings.model_timeout,
        retry=retry,
        extra_args=_form(settings),
    )
    client = openai.AsyncOpenAI(
        # A local server wants no key, but the client wants a string.
        api_key=settings.openai_api_key.get_secret_value() if settings.openai_api_key else "none",
        base_url=settings.openai_base_url,
        max_retries=0,  # the runner retries; both would multiply
        http_client=http,
    )
    model: Model
    if settings.chosen_api == "responses":
        from agents import OpenAIResponsesModel

        model = OpenAIResponsesModel(name, client)
    else:
        from agents import OpenAIChatCompletionsModel

        model = OpenAIChatCompletionsModel(name, client)
    return ChosenModel(name, model, settings.chosen_structured, calls, client)


def _again(context: RetryPolicyContext) -> bool:
    """Whether a call that failed is made again. One that timed out is not: it has waited long enough."""
    fault = context.normalized
    if fault.retry_after is not None and fault.retry_after > LONGEST_WAIT:
        return False
    return fault.is_network_error or fault.status_code in WORTH_ANOTHER_TRY


def _form(settings: Settings) -> dict[str, Any] | None:
    """How "any JSON object" is asked for; the SDK itself only knows how to ask for a schema."""
    if settings.chosen_structured != "object":
        return None
    form = {"type": "json_object"}
    return {"text": {"format": form}} if settings.chosen_api == "responses" else {"response_format": form}


class Meant(AgentsException):
    """A fault of which it is known what it means, as in a replay."""

    meant: ModelError


def explain(error: Exception, settings: Settings) -> ModelError | None:
    """What a failed run means to the person who set it up; None where it is no fault of the model."""
    if isinstance(error, Meant):
        return error.meant
    where = _place(settings)
    if isinstance(error, ModelTimeoutError | openai.APITimeoutError):
        return ModelUnavailable(
            f"the model at {where} did not answer within {settings.model_timeout:g} s (HACHI_MODEL_TIMEOUT)"
        )
    if isinstance(error, openai.APIConnectionError):
        return ModelUnavailable(f"the model server at {where} cannot be reached; is it running?")
    if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
        return ModelRejected(f"{where} refused the key; check OPENAI_API_KEY")
    if isinstance(error, openai.NotFoundError):
        return ModelRejected(
            f"{where} has no model {settings.chosen_model!r} for the {settings.chosen_api} API; "
            "check HACHI_MODEL and HACHI_API"
        )
    if isinstance(error, openai.RateLimitError):
        return ModelUnavailable(f"{where} says that too much was asked (429); try again later")
    if isinstance(error, openai.APIStatusError):
        passing = error.status_code >= 500 or error.status_code in WORTH_ANOTHER_TRY
        kind = ModelUnavailable if passing else ModelRejected
        said = error.message.removeprefix(f"Error code: {error.status_code} - ")
        return kind(f"{where} answered {error.status_code}: {_first_line(said, settings)}")
    if isinstance(error, openai.OpenAIError | AgentsException):
        return ModelUnavailable(f"the model at {where} failed: {_first_line(str(error), settings)}")
    return None


def _place(settings: Settings) -> str:
    """The server, without a password that its URL may hold."""
    if settings.openai_base_url is None:
        return "OpenAI"
    url = urlsplit(settings.openai_base_url)
    return urlunsplit(url._replace(netloc=url.netloc.rpartition("@")[2]))


def _first_line(text: str, settings: Settings) -> str:
    """What a server says of a fault, cut short, and without the key, which some repeat."""
    if settings.openai_api_key:
        text = text.replace(settings.openai_api_key.get_secret_value(), "…")
    return (text.strip().splitlines() or ["no reason given"])[0][:300]
