"""A recorded tree of spans as it is stored: a summary row, and the whole as compressed JSON.

What is recorded holds the turn's own objects; here, away from the turn, they become plain values. Each model
call repeats the request before it and adds something: only the addition is stored, and `read_trace` restores
the rest.
"""

import hashlib
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

from pydantic_core import to_json

from agent.tracing.redact import Redaction, redacted
from agent.tracing.trace import Status, Summary, Trace, descend, span_from, tool_failed
from agent.types import Usage
from memory.search.explanation import rows_of
from memory.spans import Recording, Span, in_one_line
from memory.text import storable

Content = Literal["full", "redacted", "none"]

EXCERPT = 200
"""Characters of the message and the reply that a summary holds."""
MAX_TEXT = 100_000
"""Characters of one text; of a longer one the beginning is kept."""
LARGE = 1_000_000
"""Bytes of a whole trace from which on each text is checked against `MAX_TEXT`."""
MAX_COUNT = 2**31 - 1
"""What an integer column holds."""
WITHOUT_CONTENT = frozenset({"usage", "ok", "well_formed", "tries", "limit", "found", "first", "sections"})
"""The data of a span that is kept when no content is recorded."""
MADE_BY_KEY = "maker"
AS_BEFORE = "as_before"
"""In a stored request: how many characters of the system message, and how many items, repeat the last one."""


@dataclass(slots=True)
class Subject:
    """What a recording is about."""

    kind: str
    started_at: datetime
    user: str | None
    place: str = ""
    conversation: str = ""
    model: str = ""
    said: str = ""
    reply: str = ""
    turn_id: str | None = None
    message_id: str | None = None


@dataclass(frozen=True)
class Serializer:
    """Writes traces as the settings ask for."""

    content: Content
    redaction: Redaction
    made_by: Mapping[str, Any]
    surface: str
    process: str

    @cached_property
    def made_by_key(self) -> str:
        """Names `made_by`, which is the same for many traces and stored once."""
        text = json.dumps(self.made_by, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def serialize(self, recorded: Recording, subject: Subject) -> tuple[Summary, bytes]:
        """The row and the body. No content is kept of anonymous users, and none of what is not valid JSON."""
        content: Content = "none" if subject.user is None else self.content
        try:
            body = self._body(recorded.root, content)
        except (RecursionError, ValueError, TypeError, AttributeError, RuntimeError) as error:
            content = "none"
            body = self._body(recorded.root, content, lost=in_one_line(error)[:EXCERPT])
        return self._summary(recorded, subject, content), body

    def _body(self, root: Span, content: Content, lost: str | None = None) -> bytes:
        tree = self._without_content(root) if content == "none" else _Tree().of(root)
        if lost:
            tree["data"] = tree.get("data", {}) | {"lost": lost}
        data = _json({"made_by": self.made_by_key, "root": tree})
        text = data.decode("utf-8", "surrogatepass")
        suspects = self.redaction.suspects(text)
        if suspects or len(data) > LARGE:
            data = _cleaned(data, json.loads(text), suspects)
        return zlib.compress(data, 1)

    def _without_content(self, span: Span) -> dict[str, Any]:
        """What happened and how long it took, without anything that was said."""
        tree: dict[str, Any] = {"kind": span.kind, "name": self._known_name(span), **_times(span)}
        tree["data"] = {name: value for name, value in dict(span.data).items() if name in WITHOUT_CONTENT}
        if span.error:
            tree["error"] = _error_kind(span.error)
        tree["spans"] = [self._without_content(inner) for inner in list(span.spans)]
        return tree

    def _known_name(self, span: Span) -> str:
        """The span's name, unless a model invented it: then it is content."""
        invented = span.kind == "tool" and span.name not in self.made_by.get("tools", ())
        return "unknown" if invented else span.name

    def _summary(self, recorded: Recording, subject: Subject, content: Content) -> Summary:
        root = recorded.root

        def kept(text: str) -> str:
            return "" if content == "none" else self._excerpt(text)

        spans = list(descend(root))
        error = root.error and (_error_kind(root.error) if content == "none" else kept(root.error))
        return Summary(
            id=recorded.id,
            kind=subject.kind,
            turn_id=subject.turn_id,
            status=_status(recorded, spans),
            started_at=subject.started_at,
            took=root.took,
            user=subject.user,
            place=subject.place,
            conversation=storable(subject.conversation),
            surface=self.surface,
            model=storable(subject.model),
            said=kept(subject.said),
            reply=kept(subject.reply),
            error=error,
            calls=sum(span.kind == "call" for span in spans),
            tools=tuple(self._called(span, content) for span in spans if span.kind == "tool"),
            usage=_usage(spans),
            message_id=subject.message_id,
            process=self.process,
        )

    def _excerpt(self, text: str) -> str:
        """Redacted before it is cut, as half a secret is not recognised."""
        return self.redaction.text(storable(text[:MAX_TEXT]))[:EXCERPT]

    def _called(self, tool: Span, content: Content) -> str:
        name = self._known_name(tool) if content == "none" else self._excerpt(tool.name)
        return "_".join(name.split()) + ("!" if tool_failed(tool) else "")


def read_trace(summary: Summary, body: bytes) -> Trace:
    """The trace; its `made_by` holds only the key (`MADE_BY_KEY`) under which the store has the whole. Raises
    ValueError for a body that cannot be read."""
    try:
        value = json.loads(zlib.decompress(body).decode("utf-8", "surrogatepass"))
        root = span_from(value["root"])
        _restore(root)
        return Trace(summary, root, {MADE_BY_KEY: value["made_by"]}, value.get("redacted", False))
    except (zlib.error, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise ValueError(f"the trace {summary.id} cannot be read ({type(error).__name__})") from error


def _status(recorded: Recording, spans: list[Span]) -> Status:
    if recorded.open:
        return "running"
    if recorded.root.error:
        return "error"
    if any(tool_failed(span) for span in spans if span.kind == "tool"):
        return "tool_error"
    if any(span.data.get("well_formed") is False for span in spans):
        return "malformed"
    return "ok"


def _usage(spans: list[Span]) -> Usage:
    """The sum over all calls. A server may send anything."""
    counted = [span.data["usage"] for span in spans if span.kind == "call" and span.data.get("usage")]

    def total(name: str) -> int:
        numbers = [one.get(name) for one in counted]
        return min(sum(max(0, number) for number in numbers if isinstance(number, int)), MAX_COUNT)

    return Usage(total("input"), total("output"), total("cached"))


def _error_kind(error: str) -> str:
    return error.partition(":")[0]


class _Tree:
    """Plain values of a tree of spans, without what is empty."""

    def __init__(self) -> None:
        self._last_request: dict[str, Any] = {}

    def of(self, span: Span) -> dict[str, Any]:
        tree: dict[str, Any] = {"kind": span.kind, **_times(span)}
        if span.name:
            tree["name"] = span.name
        if span.error:
            tree["error"] = span.error
        data = {name: _plain_data(value) for name, value in dict(span.data).items()}
        if span.kind == "call" and isinstance(data.get("request"), dict):
            data["request"] = self._addition(data["request"])
        if data:
            tree["data"] = data
        if span.spans:
            tree["spans"] = [self.of(inner) for inner in list(span.spans)]
        return tree

    def _addition(self, request: dict[str, Any]) -> dict[str, Any]:
        """A request without what it repeats of the one before."""
        before, self._last_request = self._last_request, request
        system, old_system = request.get("system"), before.get("system")
        items, old_items = request.get("input"), before.get("input")
        added = dict(request)
        repeated = [0, 0]
        if isinstance(system, str) and old_system and system.startswith(old_system):
            repeated[0], added["system"] = len(old_system), system[len(old_system) :]
        if isinstance(items, list) and isinstance(old_items, list) and items[: len(old_items)] == old_items:
            repeated[1], added["input"] = len(old_items), items[len(old_items) :]
        return added | {AS_BEFORE: repeated} if any(repeated) else added


def _restore(root: Span) -> None:
    """Make candidates rows again, and requests whole. The last system message is taken as it is, whatever
    the number of characters: it may have been cut or redacted."""
    system, items = "", list[Any]()
    for span in descend(root):
        if "candidates" in span.data:
            span.data["candidates"] = rows_of(span.data["candidates"])
        request = span.data.get("request")
        if span.kind != "call" or not isinstance(request, dict):
            continue
        characters, count = request.pop(AS_BEFORE, (0, 0))
        if characters:
            request["system"] = system + request["system"]
        if count:
            request["input"] = items[:count] + request["input"]
        system, items = request.get("system") or "", request.get("input") or []


def _times(span: Span) -> dict[str, float]:
    at = {"at": round(span.at, 6)} if span.at else {}
    return at if span.took is None else at | {"took": round(span.took, 6)}


def _plain_data(value: Any) -> Any:
    if hasattr(value, "to_trace"):
        return value.to_trace()
    return sorted(value, key=str) if isinstance(value, frozenset | set) else value


def _json(value: Any) -> bytes:
    """Pydantic's encoder is ten times as fast as Python's, which takes more: half surrogate pairs, bytes."""
    try:
        return to_json(value, exclude_none=True, fallback=_plain, inf_nan_mode="constants")
    except (ValueError, TypeError):
        text = json.dumps(value, ensure_ascii=False, default=_plain, skipkeys=True)
        return text.encode("utf-8", "surrogatepass")


def _cleaned(data: bytes, value: dict[str, Any], suspects: list[re.Pattern[str]]) -> bytes:
    clean = _cut(redacted(value, suspects))
    if clean == value:
        return data
    return json.dumps(clean | {"redacted": True}, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return f"{value[:MAX_TEXT]} … ({len(value) - MAX_TEXT:,} more characters)"
    if isinstance(value, dict):
        return {name: _cut(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_cut(item) for item in value]
    return value


def _plain(value: Any) -> Any:
    """A JSON value for what JSON does not know."""
    if hasattr(value, "to_trace") or isinstance(value, frozenset | set):
        return _plain_data(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True, warnings=False)
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return value.isoformat() if isinstance(value, datetime) else str(value)
