"""Explain why a model call failed, for the person who configured the model."""

import re
from urllib.parse import urlsplit, urlunsplit

import openai
from agents.exceptions import (
    AgentsException,
    InputGuardrailTripwireTriggered,
    ModelTimeoutError,
    OutputGuardrailTripwireTriggered,
)
from agents.models._retry_runtime import get_retry_after

from agent.errors import BadInput, GuardrailTripped, HachiError, ModelError, ModelRejected, ModelUnavailable
from agent.models.choice.providers import api_of, base_url_of
from agent.models.wire.errors import no_money, server_words, too_long
from agent.settings import Settings
from memory.process.breaker import ABOUT_THE_REQUEST

NO_ANSWER = "the server sent an incomplete or malformed answer; check OPENAI_BASE_URL and HACHI_API"
WORTH_RETRYING = frozenset({408, 429, 500, 502, 503, 504})
"""HTTP statuses of temporary errors."""
BROKEN_OFF = frozenset({"RemoteProtocolError", "ReadError", "WriteError"})
"""Names of httpx errors after the connection was made: the client may import httpx or httpx2."""


_FORBIDDEN = re.compile(r"polic|safe|moderat|harm|violat|sensitiv|inappropriate", re.I)
"""Words of a refusal for what an image shows."""


class ExplainedFailure(AgentsException):
    """A failure whose ModelError is already known, as in a replay."""

    error: ModelError | BadInput


def model_error(error: Exception, settings: Settings, brought: str = "") -> HachiError | None:
    """Return the error that says what to do about a failed run, with the server's `Retry-After` if it is in
    seconds; None for an unknown error. `brought` is the name of the program's own model."""
    failure = _explained(error, settings, brought)
    if failure and isinstance(error, openai.APIStatusError):
        seconds = error.response.headers.get("retry-after", "")
        failure.retry_after = float(seconds) if seconds.isdecimal() else None
    return failure


def _explained(error: Exception, settings: Settings, brought: str) -> HachiError | None:
    if isinstance(error, InputGuardrailTripwireTriggered | OutputGuardrailTripwireTriggered):
        result = error.guardrail_result
        why = f": {output}" if (output := result.output.output_info) else ""
        return GuardrailTripped(f"the guardrail {result.guardrail.get_name()} stopped the turn{why}")
    if isinstance(error, ExplainedFailure):
        return error.error
    if original := next((one for one in (error, error.__cause__) if isinstance(one, HachiError)), None):
        return original  # of a program's own model, guardrail or hook
    where = brought or _server(settings)
    if isinstance(error, ModelTimeoutError | openai.APITimeoutError):
        return ModelUnavailable(
            f"the model at {where} did not answer within {settings.model_timeout:g} s (HACHI_MODEL_TIMEOUT)"
        )
    if isinstance(error, openai.APIConnectionError) and type(error.__cause__).__name__ in BROKEN_OFF:
        return ModelUnavailable(
            f"the connection to the model at {where} was lost before its answer was whole"
        )
    if isinstance(error, openai.APIConnectionError):
        return ModelUnavailable(f"the model server at {where} cannot be reached; is it running?")
    if isinstance(error, openai.APIStatusError):
        return _refused(error, settings, where)
    if isinstance(error, openai.OpenAIError | AgentsException):
        return ModelUnavailable(f"the model at {where} failed: {_first_line(str(error), settings)}")
    return None


def _refused(error: openai.APIStatusError, settings: Settings, where: str) -> ModelError:
    """Return an error with the server's words, and what to configure."""
    status, words = error.status_code, server_words(error)
    answered = f"{where} answered {status}: {_first_line(words, settings)}"
    prefix = f"{answered.rstrip('.')};"
    if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
        return ModelRejected(f"{prefix} check {settings.key_variable}")
    if isinstance(error, openai.NotFoundError):
        return ModelRejected(
            f"{prefix} where it does not know the model {settings.chosen_model!r} or the {api_of(settings)} "
            f"API, check {settings.model_variable} and HACHI_API"
        )
    if too_long(error):
        return ModelRejected(f"{prefix} set HACHI_CONTEXT_TOKENS to what it takes")
    if no_money(error):
        return ModelUnavailable(f"{prefix} nothing is answered before its billing is in order")
    passing = status >= 500 or status in WORTH_RETRYING
    return (ModelUnavailable if passing else ModelRejected)(answered)


def server_fault(error: Exception, settings: Settings | None) -> str | None:
    """Return why the server failed, in one line; None if it works and only refuses this request. `settings`
    is None for the caller's own model."""
    if isinstance(error, ExplainedFailure) or getattr(error, "status_code", None) in ABOUT_THE_REQUEST:
        return None
    if isinstance(error, openai.APIStatusError) and too_long(error):
        return None
    if settings is None:
        return f"the model failed: {type(error).__name__}"
    return str(model_error(error, settings) or NO_ANSWER)


def _server(settings: Settings) -> str:
    """Return the name of the server, without the password its URL may contain."""
    base_url = base_url_of(settings)
    if base_url is None:
        return str(settings.model_file or "OpenAI")
    url = urlsplit(base_url)
    return urlunsplit(url._replace(netloc=url.netloc.rpartition("@")[2]))


LONGEST_WAIT = 20.0
"""Seconds. If a server asks for more in Retry-After, the call fails: a person waits for the reply."""


def worth_waiting(error: Exception) -> bool:
    """Return whether the server may answer the same request in a moment. Not after our own timeout: the
    person has waited long enough. A server will not change its mind about quota or size, but a model that
    wrote a malformed tool call may write a correct one."""
    if (get_retry_after(error) or 0) > LONGEST_WAIT:
        return False
    if not isinstance(error, openai.APIStatusError):
        return isinstance(error, openai.APIConnectionError)
    if no_money(error) or too_long(error):
        return False
    return error.status_code in WORTH_RETRYING or error.code == "tool_use_failed"


def refuses_images(error: Exception) -> bool:
    """Return whether a server may have refused a request because it has images. Some send status 500."""
    if not isinstance(error, openai.APIStatusError) or too_long(error) or no_money(error):
        return False
    words, status = server_words(error), error.status_code
    if status in (401, 403, *WORTH_RETRYING - {500}) or _FORBIDDEN.search(words):
        return False
    return status < 500 or "image" in words.casefold()


def _first_line(text: str, settings: Settings) -> str:
    """Return the first line of the server's message, at most 300 characters, without the key some servers
    repeat."""
    if settings.openai_api_key:
        text = text.replace(settings.openai_api_key.get_secret_value(), "…")
    return (text.strip().splitlines() or ["no reason given"])[0][:300]
