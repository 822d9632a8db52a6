"""The recorder of a companion, as its settings ask for it."""

import hashlib
import json
import re
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from agent.settings import Settings
from agent.traces.recorder import Recorder
from agent.traces.redaction import Redaction
from agent.traces.store import process
from agent.traces.writing import Writing
from prompts import read
from tools.registry import TOOLS

if TYPE_CHECKING:
    from agent.archive import Archive


def open_recorder(archive: "Archive", surface: str) -> Recorder:
    settings = archive.settings
    writing = Writing(
        content=settings.trace_content,
        redaction=redaction_of(settings),
        made_by=made_by(),
        surface=surface,
        process=process(),
    )
    return Recorder(archive.traces, writing, archive.clock, on=settings.traces)


def redaction_of(settings: Settings) -> Redaction:
    """The settings' own secrets go in any case: a server may say a key back that it does not know."""
    values = [value for value in vars(settings).values() if isinstance(value, SecretStr)]
    own = [re.escape(value.get_secret_value()) for value in values if len(value.get_secret_value()) >= 8]
    given = (settings.trace_redact or "").splitlines()
    return Redaction([*own, *filter(None, map(str.strip, given))], secrets=settings.trace_content != "full")


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
