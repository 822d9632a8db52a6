"""Converts summaries to rows of `traces` and back, and builds the conditions that select rows."""

from collections.abc import Iterator
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, or_, select

from agent.tracing.store.filters import TraceFilter
from agent.tracing.trace import Content, Status, Summary
from agent.types import Usage
from memory.process.identity import has_ended, this_process
from memory.sql.tables import trace_rows, traces

BATCH = 500
"""Rows to read at a time, or to delete in one transaction."""
ID_BYTES = 16
FAILED = ("error", "tool_error", "malformed")
LONGEST_TURN = timedelta(minutes=15)
"""An unfinished trace counts as killed if it was not rewritten for this long."""


_STORED = {one.name for one in fields(Summary)} - {"tools", "usage", "content", "name", "work"}
_COLUMNS = {name: name for name in _STORED} | {"user": "user_id", "conversation": "conversation_id"}
"""Fields of a Summary that are stored unchanged, and their columns."""


def to_row(summary: Summary, now: datetime) -> dict[str, Any]:
    row = {column: getattr(summary, field) for field, column in _COLUMNS.items()}
    row |= {"written_at": now, "tools": "".join(f" {name}" for name in summary.tools) + " "}
    return row | {f"{name}_tokens": number for name, number in asdict(summary.usage).items()}


def to_summary(row: Any, now: datetime, *, hidden: bool = False) -> Summary:
    """Return the summary of a row with `has_body`. If its process has ended, `running` becomes `killed`. If
    it is `hidden`, the content is left out."""
    status: Status = row.status
    if status == "running" and (now - row.written_at > LONGEST_TURN or has_ended(row.process)):
        status = "killed"
    unchanged = {field: getattr(row, column) for field, column in _COLUMNS.items()}
    usage = Usage(row.input_tokens, row.output_tokens, row.cached_tokens)
    unchanged |= {"status": status}
    if hidden:
        unchanged |= {"said": "", "reply": "", "error": None}
    content: Content = "forgotten" if not row.has_body else "hidden" if hidden else "kept"
    return Summary(**unchanged, tools=tuple(row.tools.split()), usage=usage, content=content)


def as_bytes(id: str) -> bytes | None:
    """Return a row's id as `trace_rows` stores it; None if it is no UUID."""
    try:
        found = bytes.fromhex(id.replace("-", ""))
    except ValueError:
        return None
    return found if len(found) == ID_BYTES else None


def conditions(wanted: TraceFilter) -> Iterator[ColumnElement[bool]]:
    c = traces.c
    if wanted.kinds:
        yield c.kind.in_(sorted(wanted.kinds))
    if wanted.user is not None:
        yield c.user_id == wanted.user
    if wanted.place is not None:
        yield inside(wanted.place) if wanted.place else c.place == ""
    if wanted.tool:
        yield or_(*(c.tools.contains(f" {wanted.tool}{end}", autoescape=True) for end in (" ", "! ")))
    if wanted.failed:
        maybe_killed = and_(c.status == "running", c.process != this_process())
        work = traces.alias()
        after = exists().where(work.c.turn_id == c.id, work.c.status.in_(FAILED))
        yield or_(c.status.in_(FAILED), c.retried > 0, maybe_killed, after)
    if wanted.since is not None:
        yield c.started_at >= wanted.since
    if wanted.message_id is not None:
        yield c.message_id == wanted.message_id
    if wanted.row is not None:
        showing = select(trace_rows.c.trace).where(trace_rows.c.row_id == as_bytes(wanted.row))
        yield c.seq.in_(showing)
    if wanted.slower is not None:
        yield c.took >= wanted.slower


def inside(place: str) -> ColumnElement[bool]:
    """Return the condition that a trace is of the place, or of a place inside it."""
    return or_(traces.c.place == place, traces.c.place.startswith(f"{place}/", autoescape=True))
