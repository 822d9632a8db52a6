"""A recorded tree as it is written: summed up in a row, and whole as deflated JSON.

What is recorded holds the turn's own objects; they are turned into plain values here, away from the turn.
Each call of a turn is asked all that the one before it was, and something more: only that is written, and
`read_trace` puts it together again.
"""

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

from pydantic_core import to_json

from agent.tracing.redact import Redaction, redacted
from agent.tracing.trace import Status, Summary, Trace, Usage, descend, span_from
from agent.types import writable
from memory.search.explanation import rows_of
from memory.spans import Recording, Span, in_one_line

Content = Literal["full", "redacted", "none"]

BEGINNING = 200
"""Characters of what was said and answered that a list shows and a search looks in."""
LONGEST_VALUE = 100_000
"""Characters of one text; of a longer one the beginning is kept."""
LONG = 1_000_000
"""Bytes of a whole trace from which on its texts are looked at one by one."""
MOST = 2**31 - 1
"""What a column of whole numbers holds."""
SHAPE = frozenset({"usage", "ok", "well_formed", "tries", "limit", "found", "first", "sections"})
"""What is kept of a span where no content is: nothing that anybody said."""
MAKER = "maker"
AS_BEFORE = "as_before"
"""Of a request: how much of it is the request before it: characters of the system message, and items."""


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
class Writing:
    """How traces are written here."""

    content: Content
    redaction: Redaction
    made_by: Mapping[str, Any]
    surface: str
    process: str

    @cached_property
    def maker(self) -> str:
        """What `made_by` is known by: it is the same for many traces, and kept once."""
        text = json.dumps(self.made_by, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def written(self, recorded: Recording, subject: Subject) -> tuple[Summary, bytes]:
        """The row and the body. Of somebody anonymous no content is kept, and none of what cannot be written
        as JSON."""
        content: Content = "none" if subject.user is None else self.content
        try:
            body = self._body(recorded.root, content)
        except (RecursionError, ValueError, TypeError, AttributeError, RuntimeError) as error:
            content = "none"
            body = self._body(recorded.root, content, lost=in_one_line(error)[:BEGINNING])
        return self._summary(recorded, subject, content), body

    def _body(self, root: Span, content: Content, lost: str | None = None) -> bytes:
        tree = self._shape(root) if content == "none" else _Tree().of(root)
        if lost:
            tree["data"] = tree.get("data", {}) | {"lost": lost}
        data = _json({"made_by": self.maker, "root": tree})
        text = data.decode("utf-8", "surrogatepass")
        suspects = self.redaction.suspects(text)
        if suspects or len(data) > LONG:
            data = _cleaned(data, json.loads(text), suspects)
        return zlib.compress(data, 1)

    def _shape(self, span: Span) -> dict[str, Any]:
        """What happened and how long it took, without a word of what was said."""
        shape: dict[str, Any] = {"kind": span.kind, "name": self._known(span), **_times(span)}
        shape["data"] = {name: value for name, value in dict(span.data).items() if name in SHAPE}
        if span.error:
            shape["error"] = _kind_of(span.error)
        shape["spans"] = [self._shape(inner) for inner in list(span.spans)]
        return shape

    def _known(self, span: Span) -> str:
        """Its name, unless a model made it up: then it is something that was said."""
        made_up = span.kind == "tool" and span.name not in self.made_by.get("tools", ())
        return "unknown" if made_up else span.name

    def _summary(self, recorded: Recording, subject: Subject, content: Content) -> Summary:
        root = recorded.root

        def kept(text: str) -> str:
            return "" if content == "none" else self._beginning(text)

        spans = list(descend(root))
        error = root.error and (_kind_of(root.error) if content == "none" else kept(root.error))
        return Summary(
            id=recorded.id,
            kind=subject.kind,
            turn_id=subject.turn_id,
            status=status_of(recorded, spans),
            started_at=subject.started_at,
            took=root.took,
            user=subject.user,
            place=subject.place,
            conversation=writable(subject.conversation),
            surface=self.surface,
            model=writable(subject.model),
            said=kept(subject.said),
            reply=kept(subject.reply),
            error=error,
            calls=sum(span.kind == "call" for span in spans),
            tools=tuple(self._called(span, content) for span in spans if span.kind == "tool"),
            usage=usage_of(spans),
            message_id=subject.message_id,
            process=self.process,
        )

    def _beginning(self, text: str) -> str:
        """Of what is left when secrets are out: one that is cut in two is not known any more."""
        return self.redaction.text(writable(text[:LONGEST_VALUE]))[:BEGINNING]

    def _called(self, tool: Span, content: Content) -> str:
        name = self._known(tool) if content == "none" else self._beginning(tool.name)
        return "_".join(name.split()) + ("" if _went_well(tool) else "!")


def read_trace(summary: Summary, body: bytes) -> Trace:
    """Its `made_by` says no more than which it was (`MAKER`): the store knows the rest. Raises ValueError
    where the body is none."""
    try:
        value = json.loads(zlib.decompress(body).decode("utf-8", "surrogatepass"))
        root = span_from(value["root"])
        _put_together(root)
        return Trace(summary, root, {MAKER: value["made_by"]}, value.get("redacted", False))
    except (zlib.error, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise ValueError(f"the trace {summary.id} cannot be read ({type(error).__name__})") from error


def status_of(recorded: Recording, spans: list[Span]) -> Status:
    if recorded.open:
        return "running"
    if recorded.root.error:
        return "error"
    if not all(_went_well(span) for span in spans if span.kind == "tool"):
        return "tool_error"
    if any(span.data.get("well_formed") is False for span in spans):
        return "malformed"
    return "ok"


def usage_of(spans: list[Span]) -> Usage:
    counts = [span.data["usage"] for span in spans if span.kind == "call" and span.data.get("usage")]
    return Usage(*(_count(count.get(name) for count in counts) for name in ("input", "output", "cached")))


def _count(given: Any) -> int:
    """A server may say anything."""
    return min(sum(max(0, number) for number in given if isinstance(number, int)), MOST)


def _went_well(span: Span) -> bool:
    return span.error is None and span.data.get("ok") is not False


def _kind_of(error: str) -> str:
    return error.partition(":")[0]


class _Tree:
    """Plain values of a tree of spans, what is empty left out."""

    def __init__(self) -> None:
        self._asked: dict[str, Any] = {}
        """The last request, whole."""

    def of(self, span: Span) -> dict[str, Any]:
        tree: dict[str, Any] = {"kind": span.kind, **_times(span)}
        if span.name:
            tree["name"] = span.name
        if span.error:
            tree["error"] = span.error
        data = {name: _told(value) for name, value in dict(span.data).items()}
        if span.kind == "call" and isinstance(data.get("request"), dict):
            data["request"] = self._added(data["request"])
        if data:
            tree["data"] = data
        if span.spans:
            tree["spans"] = [self.of(inner) for inner in list(span.spans)]
        return tree

    def _added(self, request: dict[str, Any]) -> dict[str, Any]:
        """A request without what the one before it has in the same places."""
        before, self._asked = self._asked, request
        system, known = request.get("system"), before.get("system")
        given, heard = request.get("input"), before.get("input")
        added = dict(request)
        same = [0, 0]
        if isinstance(system, str) and known and system.startswith(known):
            same[0], added["system"] = len(known), system[len(known) :]
        if isinstance(given, list) and isinstance(heard, list) and given[: len(heard)] == heard:
            same[1], added["input"] = len(heard), given[len(heard) :]
        return added | {AS_BEFORE: same} if any(same) else added


def _put_together(root: Span) -> None:
    """Candidates as rows, and what `_added` has left out; the system message is taken whole, as it may have
    been cut or redacted."""
    system, given = "", list[Any]()
    for span in descend(root):
        if "candidates" in span.data:
            span.data["candidates"] = rows_of(span.data["candidates"])
        request = span.data.get("request")
        if span.kind != "call" or not isinstance(request, dict):
            continue
        characters, items = request.pop(AS_BEFORE, (0, 0))
        if characters:
            request["system"] = system + request["system"]
        if items:
            request["input"] = given[:items] + request["input"]
        system, given = request.get("system") or "", request.get("input") or []


def _times(span: Span) -> dict[str, float]:
    at = {"at": round(span.at, 6)} if span.at else {}
    return at if span.took is None else at | {"took": round(span.took, 6)}


def _told(value: Any) -> Any:
    """What is written of it in place of itself."""
    if hasattr(value, "to_trace"):
        return value.to_trace()
    return sorted(value, key=str) if isinstance(value, frozenset | set) else value


def _json(value: Any) -> bytes:
    """Some ten times as quick as Python's own, which bears more: halves of surrogate pairs, bytes."""
    try:
        return to_json(value, exclude_none=True, fallback=_plain, inf_nan_mode="constants")
    except (ValueError, TypeError):
        text = json.dumps(value, ensure_ascii=False, default=_plain, skipkeys=True)
        return text.encode("utf-8", "surrogatepass")


def _cleaned(data: bytes, value: dict[str, Any], suspects: list[Any]) -> bytes:
    clean = _cut(redacted(value, suspects))
    if clean == value:
        return data
    return json.dumps(clean | {"redacted": True}, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONGEST_VALUE:
        return f"{value[:LONGEST_VALUE]} … ({len(value) - LONGEST_VALUE:,} more characters)"
    if isinstance(value, dict):
        return {name: _cut(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_cut(item) for item in value]
    return value


def _plain(value: Any) -> Any:
    """What JSON does not know."""
    if hasattr(value, "to_trace"):
        return value.to_trace()
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True, warnings=False)
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, frozenset | set):
        return sorted(value, key=str)
    return str(value)
