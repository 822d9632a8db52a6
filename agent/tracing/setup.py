"""Creates the recorder from the settings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from agent import __version__
from agent.errors import SettingsError
from agent.settings import Settings
from agent.tracing.recorder import Listener, Recorder
from agent.tracing.redact import Redaction, secret_values
from agent.tracing.serialization import Serializer
from agent.tracing.store.traces import Traces
from memory.errors import how_to_install
from memory.process.breaker import Breaker
from memory.process.identity import this_process
from memory.text import storable
from prompts import read
from tools.registry import TOOLS, Tool


def open_recorder(
    settings: Settings,
    traces: Traces,
    clock: Callable[[], datetime],
    surface: str,
    breakers: Mapping[str, Breaker],
    tools: Sequence[Tool] = TOOLS,
) -> Recorder:
    """Return the recorder. Raises SettingsError if a collector is set and its library is not installed."""
    redaction = redaction_of(settings)
    made = made_by(settings, tools)
    serializer = Serializer(settings.trace_content, redaction, made, surface, this_process())
    sender = _sender(settings, breakers["collector"])
    breaker = breakers["traces database"]
    return Recorder(traces, serializer, clock, sender, on=settings.trace_content != "off", breaker=breaker)


def _sender(settings: Settings, breaker: Breaker) -> Listener | None:
    if settings.trace_content == "off" or settings.otlp_endpoint is None:
        return None
    try:
        from agent.tracing.otlp.spans import Sender
    except ImportError as error:
        raise SettingsError(f"HACHI_OTLP_ENDPOINT needs its library: {how_to_install('otel')}") from error
    return Sender(settings.otlp_endpoint, breaker)


def redaction_of(settings: Settings) -> Redaction:
    """Return the redaction of the settings. It also redacts secrets in the settings, because a server may
    repeat a key in an error."""
    patterns = [line.strip() for line in (settings.trace_redact or "").splitlines() if line.strip()]
    values = secret_values(settings)
    return Redaction(patterns, secrets=settings.trace_content != "full", values=values)


REACH_A_TURN = (
    *("mode", "memory", "max_turns", "history_messages", "history_budget", "context_budget"),
    *("knowledge_budget", "knowledge_first", "embedder"),
    *("importance_floor", "half_life_days", "judge", "consolidate", "consolidate_model", "images", "api"),
    *("structured", "provider"),
)
"""The settings that influence a turn or the jobs after it, besides the model and the persona. Timeouts and
retries are not among them: they decide only whether there is an answer, and the trace has the answer."""


def made_by(settings: Settings, tools: Sequence[Tool] = TOOLS) -> dict[str, Any]:
    """Return everything that may influence a turn: versions, hashes of prompts, tools and settings."""
    prompts = dict(_code()["prompts"])
    if settings.persona is not None:
        with suppress(OSError, RuntimeError, ValueError):  # the turn that needs the persona reports it
            prompts["persona"] = _hash(settings.persona.expanduser().read_text(encoding="utf-8-sig"))
    chosen = settings.model_dump(mode="json", include=set(REACH_A_TURN))
    return _code() | {"prompts": prompts, "tools": tool_descriptions(tools), "settings": chosen}


def tool_descriptions(tools: Iterable[Tool]) -> dict[str, Any]:
    """Return name, description and parameters of the tools, as the model receives them."""
    return {tool.name: {"description": tool.description, "parameters": tool.schema} for tool in tools}


@cache
def _code() -> dict[str, Any]:
    names = sorted(file.name[:-3] for file in files("prompts").iterdir() if file.name.endswith(".md"))
    return {
        "versions": {"hachi": __version__} | {name: version(name) for name in ("openai-agents", "openai")},
        "prompts": {name: _hash(read(name)) for name in names},
    }


def _hash(text: str) -> str:
    return sha256(storable(text).encode()).hexdigest()[:12]
