"""A recorded tree as it is written: summed up in a row, and whole as deflated JSON.

What is recorded holds the turn's own objects; they are turned into plain values here, away from the turn.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any, Literal

from agent.messages import writable
from agent.traces.redaction import Redaction, redacted
from agent.traces.trace import Status, Summary, Trace, Usage, descend, span_from, span_json
from memory.spans import Recording, Span

Content = Literal["full", "redacted", "none"]

BEGINNING = 200
"""Characters of what was said and answered that a list shows and a search looks in."""
LONGEST_VALUE = 100_000
"""Characters of one text; of a longer one the beginning is kept."""
LONG = 1_000_000
"""Characters of a whole trace from which on its texts are looked at one by one."""
SHAPE = frozenset({"usage", "ok", "well_formed", "tries", "limit", "action", "found", "stream"})
"""What is kept of a span where no content is: nothing that anybody said."""


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


@dataclass(frozen=True, slots=True)
class Writing:
    """How traces are written here."""

    content: Content
    redaction: Redaction
    made_by: Mapping[str, Any]
    surface: str
    process: str

    def written(self, recorded: Recording, subject: Subject) -> tuple[Summary, bytes]:
        """The row and the body. Of somebody anonymous no content is kept."""
        content: Content = "none" if subject.user is None else self.content
        if content == "none":
            root: Any = _shape(recorded.root)
        else:
            root = span_json(recorded.root)
        text = json.dumps({"made_by": self.made_by, "root": root}, **_JSON)
        suspects = self.redaction.suspects(text)
        if suspects or len(text) > LONG:
            whole = redacted(json.loads(text), suspects)
            clean = json.dumps(_cut(whole), **_JSON)
            text = clean[:-1] + ', "redacted": true}' if clean != text else text
        summary = self._summary(recorded, subject, content)
        return summary, zlib.compress(text.encode("utf-8", "surrogatepass"), 1)

    def _summary(self, recorded: Recording, subject: Subject, content: Content) -> Summary:
        root = recorded.root

        def kept(text: str) -> str:
            if content == "none":
                return ""
            text = writable(text[: 2 * BEGINNING])
            return self.redaction.text(text)[:BEGINNING]

        spans = list(descend(root))
        error = root.error and (root.error.partition(":")[0] if content == "none" else kept(root.error))
        return Summary(
            id=recorded.id,
            kind=subject.kind,
            turn_id=subject.turn_id,
            status=status_of(recorded, spans),
            started_at=subject.started_at,
            took=root.took,
            user=subject.user,
            place=subject.place,
            conversation=subject.conversation,
            surface=self.surface,
            model=subject.model,
            said=kept(subject.said),
            reply=kept(subject.reply),
            error=error,
            calls=sum(span.kind == "call" for span in spans),
            tools=tuple(_called(span) for span in spans if span.kind == "tool"),
            usage=usage_of(spans),
            message_id=subject.message_id,
            process=self.process,
        )


def read_trace(summary: Summary, body: bytes) -> Trace:
    """Raises ValueError where the body is none."""
    try:
        value = json.loads(zlib.decompress(body).decode("utf-8", "surrogatepass"))
        return Trace(summary, span_from(value["root"]), value["made_by"], value.get("redacted", False))
    except (zlib.error, KeyError, TypeError, UnicodeDecodeError) as error:
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
    return Usage(
        *(sum(int(count.get(name) or 0) for count in counts) for name in ("input", "output", "cached"))
    )


def _called(tool: Span) -> str:
    return tool.name if _went_well(tool) else f"{tool.name}!"


def _went_well(span: Span) -> bool:
    return span.error is None and span.data.get("ok") is not False


def _shape(span: Span) -> dict[str, Any]:
    """What happened and how long it took, without a word of what was said."""
    shape = span_json(Span(span.kind, span.name, span.at, span.took))
    shape["data"] = {name: value for name, value in span.data.items() if name in SHAPE}
    if span.error:
        shape["error"] = span.error.partition(":")[0]
    shape["spans"] = [_shape(inner) for inner in span.spans]
    return shape


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
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, frozenset | set):
        return sorted(value, key=str)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True)
    return str(value)


_JSON: dict[str, Any] = {"ensure_ascii": False, "default": _plain, "skipkeys": True}
