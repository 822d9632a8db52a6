"""The recorder of a companion, as its settings ask for it."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

from pydantic import SecretStr

from agent.errors import SettingsError
from agent.settings import Settings
from agent.tracing.recorder import Listener, Recorder
from agent.tracing.redact import Redaction
from agent.tracing.serialization import Writing
from agent.tracing.store import Traces, process
from prompts import read
from tools.registry import TOOLS

SHORTEST_SECRET = 8
"""Characters: what is shorter is part of too many words to be taken out wherever it stands."""


def open_recorder(
    settings: Settings, traces: Traces, clock: Callable[[], datetime], surface: str
) -> Recorder:
    writing = Writing(
        content=settings.trace_content,
        redaction=redaction_of(settings),
        made_by=made_by(),
        surface=surface,
        process=process(),
    )
    return Recorder(traces, writing, clock, _listeners(settings), on=settings.traces)


def _listeners(settings: Settings) -> list[Listener]:
    """Raises SettingsError where what is asked for is not installed."""
    if not settings.traces or settings.otlp_endpoint is None:
        return []
    try:
        from agent.tracing.opentelemetry import Sender
    except ImportError as error:
        raise SettingsError("HACHI_OTLP_ENDPOINT needs its library: pip install 'hachi[otel]'") from error
    return [Sender(settings.otlp_endpoint)]


def redaction_of(settings: Settings) -> Redaction:
    """The settings' own secrets go in any case: a server may say a key back that it does not know."""
    given = (settings.trace_redact or "").splitlines()
    return Redaction(
        [line.strip() for line in given if line.strip()],
        secrets=settings.trace_content != "full",
        values=[value for value in _own_secrets(settings) if len(value) >= SHORTEST_SECRET],
    )


def _own_secrets(settings: Settings) -> Iterator[str]:
    """Each as it is; of a URL also the password alone, as it is written there and as it is meant."""
    for value in vars(settings).values():
        if isinstance(value, SecretStr):
            secret = value.get_secret_value()
            yield secret
            if found := re.match(r"[^/]+://[^/@:]*:([^@/]+)@", secret):
                yield found[1]
                yield unquote(found[1])


@cache
def made_by() -> dict[str, Any]:
    """What could make the same turn end otherwise: versions, prompts, tools."""
    return {
        "versions": {name: version(name) for name in ("hachi", "openai-agents", "openai", "qdrant-edge-py")},
        "prompts": {name: digest(read(name)) for name in prompt_names()},
        "tools": {tool.name: {"description": tool.description, "parameters": tool.schema} for tool in TOOLS},
    }


def prompt_names() -> list[str]:
    names = [file.name for file in files("prompts").iterdir()]
    return sorted(name.removesuffix(".md") for name in names if name.endswith(".md"))


def digest(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
