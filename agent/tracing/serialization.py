"""The stored form of a recorded tree of spans: a summary row, and the whole tree as compressed JSON.

A recording refers to the turn's objects, which are converted to plain values after the turn. Each model call
repeats the previous request and adds to it; only the addition is stored.
"""

import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, NamedTuple

from pydantic_core import to_json

from agent.errors import BadInput
from agent.tracing.redact import Redaction, map_texts, redacted
from agent.tracing.trace import (
    Status,
    Summary,
    Trace,
    descend,
    retried,
    span_from,
    span_json,
    tool_failed,
    usage_of,
    was_stopped,
)
from memory.process.spans import Recording, Span, describe_error
from memory.search.explanation import rows_of
from memory.text import storable

Content = Literal["full", "redacted", "none", "off"]

EXCERPT = 200
"""The most characters of the message and the reply in a summary."""
MAX_TEXT = 100_000
"""The most characters of one text; a longer text is cut at its end."""
LARGE = 1_000_000
"""If a trace has more bytes than this, each text is cut to `MAX_TEXT`."""
WITHOUT_CONTENT = frozenset(
    "usage ok well_formed tries limit found given first finish cut narrow other_memory "
    "sections question_at question_sections".split()
)
"""The fields of a span's data that are stored even when content is not."""
MADE_BY_KEY = "maker"
AS_BEFORE = "as_before"
"""The field of a stored request that says how many messages repeat the previous request. Other parts are
omitted if they are unchanged."""


_ID = re.compile(rb'"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})')
"""An id at the beginning of a JSON string."""


_PICTURE, _NO_PICTURE = re.compile(rb'"data:image/[^"\\\[]{40,}'), b'"data:image/[picture]'
"""A picture's data URL, and what replaces it in a trace."""


_SHORT_ID = re.compile(r"[0-9a-f-]{4,36}")
_INNER = ("memory", "task", "document")
"""The fields of a result that may have the row that it is about."""
MOST_TOLD = 100
"""The most items of a list that are stored; an import may have any number."""
_TEXT = "(a text)"
"""Replaces a text that is left out."""


class StoredTrace(NamedTuple):
    """A trace in its stored form."""

    summary: Summary
    body: bytes | None
    """The tree; None once its content is forgotten."""
    rows: frozenset[str] = frozenset()
    """The ids of rows whose text may be in the trace."""

    def without(self, forgotten: Set[str]) -> "StoredTrace":
        """Return the trace, without content if it shows one of these rows."""
        return self if self.rows.isdisjoint(forgotten) else self.without_content()

    def without_content(self) -> "StoredTrace":
        return StoredTrace(replace(self.summary, said="", reply="", error=None), None)


@dataclass(frozen=True)
class Serializer:
    """Serializes traces according to the settings."""

    content: Content
    redaction: Redaction
    made_by: Mapping[str, Any]
    surface: str
    process: str

    @cached_property
    def made_by_key(self) -> str:
        """Return the key of `made_by`. Traces with the same value share one stored copy."""
        text = json.dumps(self.made_by, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def serialize(self, recorded: Recording, about: Summary) -> StoredTrace:
        """Return the body, and the summary: `about`, completed from the recording. Both omit content for
        anonymous users, or if the recording cannot be written as JSON."""
        root, running, lost = recorded.root, recorded.open, None
        if about.user is not None and self.content != "none":
            try:
                summary = self._summary(running, root, about)
                body, ids = self._body(root)
                ids |= recorded.rows | ({about.message_id} if about.message_id else set())
                return StoredTrace(summary, body, ids)
            except (RecursionError, ValueError, TypeError, AttributeError, RuntimeError) as error:
                lost = describe_error(error)[:EXCERPT]
        root = self._without_content(root)
        root.data |= {"lost": lost} if lost else {}
        summary = self._summary(running, root, replace(about, said="", reply=""))
        return StoredTrace(summary, self._body(root)[0])

    def _body(self, root: Span) -> tuple[bytes, frozenset[str]]:
        """Return the body, and the ids in it."""
        data = _PICTURE.sub(_NO_PICTURE, _json({"made_by": self.made_by_key, "root": _Tree().of(root)}))
        text, ids = data.decode("utf-8", "surrogatepass"), set(_ID.findall(data))
        suspects = self.redaction.suspects(text)
        if suspects or len(data) > LARGE:
            whole = json.loads(text)
            clean = map_texts(redacted(whole, suspects), _cut)
            if clean != whole:
                data = _json(clean | {"redacted": True})
        return zlib.compress(data, 1), frozenset(id.decode() for id in ids)

    def _without_content(self, span: Span) -> Span:
        """Return the span without text by people or models, such as an invented name of a tool."""
        invented = span.kind == "tool" and span.name not in self.made_by.get("tools", ())
        return replace(
            span,
            name="unknown" if invented else span.name,
            error=span.error and span.error.partition(":")[0],
            data={name: value for name, value in dict(span.data).items() if name in WITHOUT_CONTENT},
            spans=[self._without_content(inner) for inner in list(span.spans)],
        )

    def _summary(self, running: bool, root: Span, about: Summary) -> Summary:
        spans = list(descend(root))
        calls = [span for span in spans if span.kind == "call"]
        tools = [span for span in spans if span.kind == "tool"]
        return replace(
            about,
            status="running" if running else _status(root, spans),
            took=root.took,
            first=root.data.get("first"),
            retried=retried(root),
            conversation=storable(about.conversation),
            surface=self.surface,
            model=storable(_answering(root, calls) or about.model),
            said=self._excerpt(about.said),
            reply=self._excerpt(about.reply),
            error=root.error and self._excerpt(root.error),
            calls=len(calls),
            tools=tuple("_".join(self._excerpt(one.name).split()) + "!" * tool_failed(one) for one in tools),
            usage=usage_of(calls),
            process=self.process,
        )

    def _excerpt(self, text: str) -> str:
        """Return the beginning of the text. It is redacted first: half a secret is not recognised."""
        return self.redaction.text(storable(text[:MAX_TEXT]))[:EXCERPT]


def read_trace(summary: Summary, body: bytes) -> Trace:
    """Restore the trace. Its `made_by` holds only the key (`MADE_BY_KEY`) of the stored value. Raises
    BadInput for an unreadable body."""
    try:
        value = json.loads(zlib.decompress(body).decode("utf-8", "surrogatepass"))
        root = span_from(value["root"])
        _restore(root)
        return Trace(summary, root, {MADE_BY_KEY: value["made_by"]}, value.get("redacted", False))
    except (zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"the trace {summary.id} cannot be read ({type(error).__name__})") from error


def _answering(root: Span, calls: Sequence[Span]) -> str:
    """Return the model of the turn's last call or, if it has none, of the last call at any depth."""
    return next(
        (one.name for one in reversed(root.spans) if one.kind == "call"), calls[-1].name if calls else ""
    )


def _status(root: Span, spans: list[Span]) -> Status:
    if root.error:
        return "stopped" if was_stopped(root) else "error"
    if any(tool_failed(span) for span in spans if span.kind == "tool"):
        return "tool_error"
    return "malformed" if any(span.data.get("well_formed") is False for span in spans) else "ok"


class _Tree:
    """Converts a tree of spans to plain values, without empty ones."""

    def __init__(self) -> None:
        self._last_request: dict[str, Any] = {}

    def of(self, span: Span) -> dict[str, Any]:
        data = {name: _plain_data(value) for name, value in dict(span.data).items()}
        if span.kind == "call" and isinstance(data.get("request"), dict):
            data["request"] = self._addition(data["request"])
        inner = [self.of(one) for one in list(span.spans)]
        return span_json(replace(span, data=data, spans=[])) | ({"spans": inner} if inner else {})

    def _addition(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the parts of the request that differ from the previous one."""
        before, self._last_request = self._last_request, request
        added = {name: value for name, value in request.items() if value != before.get(name, ...)}
        items, repeated = request.get("input"), before.get("input")
        if isinstance(items, list) and isinstance(repeated, list) and items[: len(repeated)] == repeated:
            added |= {"input": items[len(repeated) :], AS_BEFORE: len(repeated)}
        return added


def _restore(root: Span) -> None:
    """Expand the stored form: candidates from rows, requests with their repeated parts, and searches with the
    ids that their tool returned."""
    before: dict[str, Any] = {}
    for span in descend(root):
        if span.kind == "tool" and "given" in span.data:
            for search in (inner for inner in span.spans if inner.kind == "search"):
                search.data["given"] = span.data["given"]
        if "candidates" in span.data:
            span.data["candidates"] = rows_of(span.data["candidates"])
        request = span.data.get("request")
        if span.kind == "call" and isinstance(request, dict):
            if count := request.pop(AS_BEFORE, 0):
                request["input"] = before["input"][:count] + request.get("input", [])
            before = span.data["request"] = before | request


def _plain_data(value: Any) -> Any:
    if hasattr(value, "to_trace"):
        return value.to_trace()
    if isinstance(value, list) and value and hasattr(value[0], "to_trace"):
        return [one.to_trace() for one in value]
    return sorted(value, key=str) if isinstance(value, frozenset | set) else value


def _json(value: Any) -> bytes:
    """Encode as JSON. Falls back to Python's encoder, which accepts surrogates and bytes, but takes ten times
    as long."""
    try:
        return to_json(value, exclude_none=True, fallback=_plain, inf_nan_mode="constants")
    except (ValueError, TypeError):
        text = json.dumps(value, ensure_ascii=False, default=_plain, skipkeys=True)
        return text.encode("utf-8", "surrogatepass")


def _cut(text: str) -> str:
    """Cut a text to `MAX_TEXT`, with a note of how much is missing."""
    kept = MAX_TEXT - 40
    return f"{text[:kept]} … ({len(text) - kept:,} more characters)" if len(text) > MAX_TEXT else text


def _plain(value: Any) -> Any:
    """Return a JSON value for an object that JSON cannot represent."""
    if hasattr(value, "to_trace") or isinstance(value, frozenset | set):
        return _plain_data(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True, warnings=False)
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return value.isoformat() if isinstance(value, datetime) else str(value)


def call_arguments(arguments: Mapping[str, Any], *, texts: bool) -> dict[str, Any]:
    """Return the arguments as JSON, without user and place, which the trace has anyway. Without `texts`,
    texts are left out: only numbers, times and ids remain."""
    left_out = ("self", "user", "place")
    return {name: _told(value, texts) for name, value in arguments.items() if name not in left_out}


def _told(value: Any, texts: bool) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return storable(value) if texts or _SHORT_ID.fullmatch(value) else _TEXT
    if isinstance(value, Mapping):
        return {storable(str(name)): _told(one, texts) for name, one in value.items()}
    if isinstance(value, list | tuple):
        more = [f"({len(value) - MOST_TOLD} more)"] if len(value) > MOST_TOLD else []
        return [_told(one, texts) for one in value[:MOST_TOLD]] + more
    return value.isoformat() if hasattr(value, "isoformat") else f"({type(value).__name__})"


def ids_of(result: object) -> set[str]:
    """Return the ids of the rows that a call created, changed or found."""
    shown = result if isinstance(result, list) else (result, *(getattr(result, one, None) for one in _INNER))
    return {id for one in shown if isinstance(id := getattr(one, "id", None), str)}
