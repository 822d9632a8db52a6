"""Why the model was given a memory in a turn, or was not: every gate that the memory met, with its value.

Computed when asked, from the rows and the trace. A trace holds no memory that its turn's audience could not
read, so what is private, expired or replaced is read from its rows.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, case, func, literal, or_, select

from agent.errors import BadInput
from agent.tracing.store.filters import TraceFilter
from agent.tracing.store.traces import Traces
from agent.tracing.trace import Summary, Trace, given_of, mappings, read_data
from memory.audience import GLOBAL, PRIVATE, Audience, Place, user_key
from memory.errors import NotFound
from memory.index.sync import IndexSync
from memory.process.spans import Span
from memory.sql.engine import Database
from memory.sql.hidden import link_is_hidden
from memory.sql.memories.memory_rows import WHOLE_ID, begins
from memory.sql.tables import memories, memory_owners, memory_updates
from memory.text.short_ids import SHORT_ID

FITTING = 10
"""The most memories that are explained."""
LANES = {"words": "in words", "dense": "in meaning"}


@dataclass(frozen=True, slots=True)
class Gate:
    name: str
    passed: bool
    value: str


@dataclass(frozen=True, slots=True)
class Why:
    id: str
    content: str
    """Empty while it is forgotten."""
    gates: tuple[Gate, ...]
    """In the order in which they are met."""
    given: bool | None
    """Whether the model was given it in the turn; None without one."""

    @property
    def stopped_at(self) -> Gate | None:
        return None if self.given else next((gate for gate in self.gates if not gate.passed), None)


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asks, about which turn."""

    now: datetime
    user: str | None
    """Explains what this person may list; None: all, for the operator."""
    trace: Trace | None = None

    @property
    def audience(self) -> Audience | None:
        """Who reads: that of the turn, or the person in private; None where neither is named."""
        if self.trace:
            return Audience.of(self.trace.summary.user, Place.of_key(self.trace.summary.place))
        return None if self.user is None else Audience.of(self.user, PRIVATE)

    @property
    def at(self) -> datetime:
        return self.trace.summary.started_at if self.trace else self.now


async def why(database: Database, sync: IndexSync, asked: Asked, wanted: str) -> list[Why]:
    """Explain the memories with this id, or beginning of an id, or those that hold most words of a text.
    Raises NotFound where none does."""
    found = await _links(database, wanted.strip().lower(), asked.user)
    if not found:
        raise NotFound(await _gone(database, wanted))
    waiting = await sync.waiting(patient=False)
    not_yet = waiting.why or "not yet: a search reads its row meanwhile"
    late = {
        id for ids in ([*waiting.ids.get("memory", ())], [] if not waiting.why else [*found]) for id in ids
    }
    return [_explained(asked, links, not_yet if id in late else "") for id, links in found.items()]


async def _links(database: Database, wanted: str, user: str | None) -> dict[str, list[Any]]:
    """Return the links of the memories that fit, each with its memory, by the memories' ids."""
    link, newer = memory_owners.c, memories.alias()
    texts = [func.lower(memories.c.content).contains(word, autoescape=True) for word in _words(wanted)]
    shared: ColumnElement[int] = sum((case((text, 1), else_=0) for text in texts), literal(0))
    fits = begins(memories.c.id, wanted) if _is_id(wanted) else shared > 0
    best = select(memories.c.id, shared.label("shared")).where(fits)
    if user is not None:
        owned = select(link.memory_id).where(link.owner.in_([user_key(user), GLOBAL]))
        best = best.where(memories.c.id.in_(owned))
    rows = await database.rows(best.order_by(shared.desc(), memories.c.created_at.desc()).limit(FITTING))
    ids = [row.id for row in rows if row.shared == rows[0].shared]
    query = (
        select(memories, link.owner, link.superseded_by, link.superseded_at, link.reason)
        .add_columns(newer.c.content.label("newer"), link_is_hidden().label("hidden"))
        .join(memory_owners, link.memory_id == memories.c.id)
        .outerjoin(newer, newer.c.id == link.superseded_by)
        .where(memories.c.id.in_(ids))
        .order_by(memories.c.created_at, memories.c.id, link.owner)
    )
    links = await database.rows(query)
    return {id: list(of) for id, of in groupby(links, lambda row: str(row.id))}


def _is_id(wanted: str) -> bool:
    return re.fullmatch(rf"[0-9a-f-]{{{SHORT_ID},{WHOLE_ID}}}", wanted) is not None


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r"\w+", text)))


async def _gone(database: Database, wanted: str) -> str:
    """Return that nothing fits; of an id that a change names, when that was and why, without its text."""
    step = memory_updates.c
    if _is_id(wanted):
        named = or_(begins(step.old_id, wanted), begins(step.new_id, wanted))
        for row in await database.rows(select(memory_updates).where(named).order_by(step.created_at.desc())):
            return (
                f"the memory {wanted} is gone for good; last changed on {_day(row.created_at)}: {row.reason}"
            )
    return f"no memory fits {wanted!r}: it was never stored, or it is gone for good"


def _explained(asked: Asked, links: Sequence[Any], not_indexed: str) -> Why:
    memory, hidden = links[0], any(link.hidden for link in links)
    rows = list(_row_gates(asked, links))
    gates = [*rows, Gate("indexed", not not_indexed, not_indexed or "yes")]
    given = None
    if asked.trace:
        met = list(_trace_gates(asked.trace, memory.id, candidate=all(gate.passed for gate in rows)))
        given = any(gate.passed for gate in met)
        gates += met
    return Why(memory.id, "" if hidden else memory.content, tuple(gates), given)


def _row_gates(asked: Asked, links: Sequence[Any]) -> Iterator[Gate]:
    """Yield what the rows say: as they are now, and as far as they tell, as they were in the turn."""
    memory, audience = links[0], asked.audience
    owners = ", ".join(link.owner for link in links)
    mine = [link for link in links if audience is None or link.owner in audience.keys]
    if audience is not None:
        reads = ", ".join(sorted(audience.keys)) or "nothing"
        yield Gate("may be read here", bool(mine), f"it is of {owners}; read is {reads}")
    else:
        yield Gate("may be read", True, f"by {owners}")
    mine = mine or list(links)
    shown = [link for link in mine if not link.hidden]
    yield Gate("not forgotten", bool(shown), "" if shown else "forgotten, and can be brought back for now")
    holding = [link for link in mine if link.superseded_by is None or _after(link.superseded_at, asked.at)]
    ended = next((link for link in shown if link.superseded_by is not None), None)
    by = f"on {_day(ended.superseded_at)} by “{ended.newer}” ({ended.reason})" if ended else ""
    yield Gate("not replaced", bool(holding) or not shown, by)
    until = memory.expires_at
    expired = until is not None and until <= asked.at
    yield Gate(
        "not expired", not expired, f"{'on' if expired else 'until'} {_day(until)}" if until else "for good"
    )
    if asked.trace:
        yield Gate("told before", memory.created_at <= asked.at, f"on {_day(memory.created_at)}")


def _after(moment: datetime | None, other: datetime) -> bool:
    return moment is not None and moment > other


def _day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment else "no day"


def _trace_gates(trace: Trace, id: str, *, candidate: bool = True) -> Iterator[Gate]:
    """Yield what the prompt and each search made of the memory, which its rows say was a `candidate`; passed
    where the model was given it."""
    shown = [span for span in trace.spans("scene") if id in (read_data(span, "context", "shown") or ())]
    yield Gate("in the prompt", bool(shown), "" if shown else "not among the few facts there")
    for search in trace.spans("search"):
        yield _searched(search, id, candidate)


def _searched(search: Span, id: str, candidate: bool) -> Gate:
    given = id in given_of(search)
    query = search.data.get("query")
    name = f"search “{query}”" if query else "list of the newest"
    candidates = mappings(search.data.get("candidates"))
    here = next((one for one in candidates if one.get("id") == id), None)
    found = any(id == hit for hit, _ in search.data.get("found") or ())
    if here is None and not found:
        far = "not found: neither its words nor its meaning are near enough to the question"
        missed = far if query else "not among them"
        return Gate(name, False, missed if candidate else "not looked for, by what is said above")
    ranked = here is not None and "lanes" in here
    ranks = [f"{_rank(candidates, id, lane)} {told}" for lane, told in LANES.items()] if ranked else []
    score = [f"score {here['score']:g}"] if here and "score" in here else []
    end = (
        "given" if given else str((here or {}).get("left_out") or "found, but the result had no room for it")
    )
    return Gate(name, given, ", ".join([*filter(None, ranks), *score, end]))


def _rank(candidates: Sequence[Any], id: str, lane: str) -> str:
    scores = {str(one["id"]): one["lanes"][lane] for one in candidates if lane in (one.get("lanes") or {})}
    if id not in scores:
        return "not"
    return f"number {1 + sum(score > scores[id] for score in scores.values())} ({scores[id]:g})"


async def traces_of(traces: Traces, id: str, now: datetime, limit: int = 20) -> list[tuple[Summary, str]]:
    """Return the newest traces that show a memory, each with what happened to it there."""
    found = []
    for summary in await traces.list(TraceFilter(kinds=frozenset(), row=id), now, limit):
        try:
            found.append((summary, _part(await traces.get(summary.id, now), id)))
        except (NotFound, BadInput):
            found.append((summary, "forgotten"))
    return found


def _part(trace: Trace, id: str) -> str:
    """Return the most that happened to the memory in the turn or job."""
    for span in trace.spans("decision"):
        for one in mappings(span.data.get("decisions")):
            if id in (one.get("id"), one.get("target_id")):
                return f"decided: {one.get('action')}, {one.get('reason')}"
    if any(gate.passed for gate in _trace_gates(trace, id)):
        return "given to the model"
    return (
        "found, not given"
        if any(id in str(span.data.get("found")) for span in trace.spans("search"))
        else "read"
    )
