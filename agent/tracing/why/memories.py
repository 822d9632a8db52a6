"""Why the model was given a memory in a turn, or was not: every gate that the memory met, with its value.

Computed when asked, from the rows and the trace. A trace holds no memory that its turn's audience could not
read, so what is private, expired or replaced is read from its rows.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, Literal

from sqlalchemy import ColumnElement, Select, case, func, literal, or_, select

from agent.errors import BadInput
from agent.tracing.store.filters import TraceFilter
from agent.tracing.store.traces import Traces
from agent.tracing.trace import Summary, Trace, given_of, mappings, read_data, scored_ids
from memory.audience import GLOBAL, PRIVATE, Audience, Place, user_key
from memory.errors import NotFound
from memory.index import Kind
from memory.index.searching import Waiting
from memory.index.sync import IndexSync
from memory.process.spans import Span
from memory.search.core_facts import IMPORTANT, TELLING, shared_words
from memory.search.excerpts import RELEVANT
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
    way: bool = False
    """Whether it is one of the ways to the model, of which one is enough."""


@dataclass(frozen=True, slots=True)
class Why:
    id: str
    content: str
    """Empty while it is forgotten."""
    gates: tuple[Gate, ...]
    """In the order in which they are met."""
    given: bool | None
    """Whether the model was given it in the turn; None without one."""
    kind: Literal["memory", "message"] = "memory"

    @property
    def stopped_at(self) -> Gate | None:
        """The first condition that did not hold, or the last way to the model that was closed."""
        if self.given:
            return None
        failed = [gate for gate in self.gates if not gate.passed]
        return next((gate for gate in failed if not gate.way), failed[-1] if failed else None)


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
    found = await _links(database, wanted, asked.user)
    if not found:
        raise NotFound(await _gone(database, wanted))
    waiting = await sync.waiting(patient=False)
    return [_explained(asked, links, waiting) for links in found.values()]


def indexed(waiting: Waiting, kind: Kind, id: str) -> Gate:
    late = "not yet: a search reads its row meanwhile" if id in waiting.ids.get(kind, ()) else None
    return Gate("indexed", not (waiting.why or late), waiting.why or late or "yes")


async def _links(database: Database, wanted: str, user: str | None) -> dict[str, list[Any]]:
    """Return the links of the memories that fit, each with its memory, by the memories' ids."""
    link, newer, best = memory_owners.c, memories.alias(), select(memories.c.id)
    if user is not None:
        owned = select(link.memory_id).where(link.owner.in_([user_key(user), GLOBAL]))
        best = best.where(memories.c.id.in_(owned))
    ids = [row.id for row in await fitting(database, best, memories.c.content, memories.c.created_at, wanted)]
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


async def fitting(
    database: Database, query: Select[Any], text: ColumnElement[str], at: ColumnElement[Any], wanted: str
) -> Sequence[Any]:
    """Return the rows with this id, or beginning of an id, or those whose text holds most of the words."""
    wanted = wanted.strip().lower()
    if _is_id(wanted):
        return await database.rows(query.where(begins(query.selected_columns.id, wanted)).limit(FITTING))
    words = dict.fromkeys(re.findall(r"\w+", wanted))
    holds = [case((func.lower(text).contains(word, autoescape=True), 1), else_=0) for word in words]
    shared: ColumnElement[int] = sum(holds, literal(0))
    query = query.add_columns(shared.label("shared")).where(shared > 0)
    rows = await database.rows(query.order_by(shared.desc(), at.desc()).limit(FITTING))
    return [row for row in rows if row.shared == rows[0].shared]


def _is_id(wanted: str) -> bool:
    return re.fullmatch(rf"[0-9a-f-]{{{SHORT_ID},{WHOLE_ID}}}", wanted) is not None


async def _gone(database: Database, wanted: str) -> str:
    """Return that nothing fits; of an id that a change names, when that was and why, without its text."""
    step, id = memory_updates.c, wanted.strip().lower()
    if _is_id(id):
        named = or_(begins(step.old_id, id), begins(step.new_id, id))
        for row in await database.rows(select(memory_updates).where(named).order_by(step.created_at.desc())):
            return (
                f"the memory {wanted} is gone for good; last changed on {day(row.created_at)}: {row.reason}"
            )
    return f"no memory fits {wanted!r}: it was never stored, or it is gone for good"


def _explained(asked: Asked, links: Sequence[Any], waiting: Waiting) -> Why:
    memory, hidden = links[0], any(link.hidden for link in links)
    rows = list(_row_gates(asked, links))
    gates = [*rows, indexed(waiting, "memory", memory.id)]
    given = None
    if asked.trace:
        outside = _outside_prompt(asked.trace, memory)
        met = list(ways(asked.trace, memory.id, outside, candidate=all(gate.passed for gate in rows)))
        given = any(gate.passed for gate in met)
        gates += met
    return Why(memory.id, "" if hidden else memory.content, tuple(gates), given)


def _row_gates(asked: Asked, links: Sequence[Any]) -> Iterator[Gate]:
    """Yield what the rows say: as they are now, and as far as they tell, as they were in the turn."""
    memory, audience = links[0], asked.audience
    mine = [link for link in links if audience is None or link.owner in audience.keys]
    yield may_read(asked, [link.owner for link in links])
    mine = mine or list(links)
    shown = [link for link in mine if not link.hidden]
    yield Gate("not forgotten", bool(shown), "" if shown else "forgotten, and can be brought back for now")
    holding = [link for link in mine if link.superseded_by is None or _after(link.superseded_at, asked.at)]
    ended = next((link for link in shown if link.superseded_by is not None), None)
    by = f"on {day(ended.superseded_at)} by “{ended.newer}” ({ended.reason})" if ended else ""
    yield Gate("not replaced", bool(holding) or not shown, by)
    until = memory.expires_at
    expired = until is not None and until <= asked.at
    yield Gate(
        "not expired", not expired, f"{'on' if expired else 'until'} {day(until)}" if until else "for good"
    )
    if asked.trace:
        yield Gate("told before", memory.created_at <= asked.at, f"on {day(memory.created_at)}")


def may_read(asked: Asked, owners: Collection[str]) -> Gate:
    """Return whether who reads may read what is of these."""
    told, audience = ", ".join(owners), asked.audience
    if audience is None:
        return Gate("may be read", True, f"by {told}")
    reads = ", ".join(sorted(audience.keys)) or "nothing"
    return Gate("may be read here", audience.may_read(owners), f"it is of {told}; read is {reads}")


def _after(moment: datetime | None, other: datetime) -> bool:
    return moment is not None and moment > other


def day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment else "no day"


NOT_LOOKED_FOR = "not looked for, by what is said above"


def _outside_prompt(trace: Trace, memory: Any) -> str:
    """Return why a fact that may be read does not stand in the prompt."""
    if memory.user_id != trace.summary.user and not trace.summary.place:
        return "somebody else told it"
    if memory.importance < IMPORTANT:
        return f"its importance {memory.importance:g} is under {IMPORTANT:g}"
    text = next((str(read_data(scene, "context", "prompt", "text")) for scene in trace.spans("scene")), "")
    if memory.importance < TELLING and not shared_words(text, memory.content, memory.subjects):
        little = f"its importance {memory.importance:g} is under {TELLING:g}"
        return f"it shares no word with the message, and {little}"
    return "other facts took the room that there is"


def ways(trace: Trace, id: str, outside: str = "", *, candidate: bool = True) -> Iterator[Gate]:
    """Yield what the prompt and each search made of a memory or message, which by its rows was a `candidate`;
    passed where the model was given it. `outside` says why it does not stand in the prompt."""
    shown = any(id in (read_data(span, "context", "shown") or ()) for span in trace.spans("scene"))
    yield Gate("in the prompt", shown, "" if shown else outside if candidate else NOT_LOOKED_FOR, way=True)
    seen = shown
    for search in trace.spans("search"):
        given = id in given_of(search)
        query = search.data.get("query")
        name = f"search “{query}”" if query else "list of the newest"
        end = "given" if given else "the model saw it already" if seen else _missed(search, id, candidate)
        seen = seen or given
        yield Gate(name, given, ", ".join([*_scores(search, id), end]), way=True)


def _missed(search: Span, id: str, candidate: bool) -> str:
    """Return why a search did not give it to the model."""
    found = dict(scored_ids(search))
    if id in found:
        least = RELEVANT * max(found.values())
        return (
            f"found, but under {RELEVANT:g} of the best score, {max(found.values()):g}"
            if found[id] < least
            else "found, but the result had no room for it"
        )
    here = next((one for one in mappings(search.data.get("candidates")) if one.get("id") == id), None)
    if here and here.get("left_out"):
        return str(here["left_out"])
    if not candidate:
        return NOT_LOOKED_FOR
    if search.data.get("without_index"):
        return f"not among the newest rows, which alone were read: {search.data['without_index']}"
    far = "not found: neither its words nor its meaning are near enough to the question"
    return far if search.data.get("query") else "not among them"


def _scores(search: Span, id: str) -> list[str]:
    """Return its rank in words and in meaning, and its score, as far as the search has them."""
    candidates = mappings(search.data.get("candidates"))
    here = next((one for one in candidates if one.get("id") == id), {})
    ranks = (
        [f"{_rank(candidates, id, lane)} {told}" for lane, told in LANES.items()] if "lanes" in here else []
    )
    return [*ranks, f"score {here['score']:g}"] if "score" in here else ranks


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
    """Return the most that happened to the memory or message in the turn or job."""
    if trace.summary.message_id == id:
        return "said"
    for span in trace.spans("decision"):
        for one in mappings(span.data.get("decisions")):
            if id in (one.get("id"), one.get("target_id")):
                return f"decided: {one.get('action')}, {one.get('reason')}"
    if any(gate.passed for gate in ways(trace, id)):
        return "given to the model"
    return (
        "found, not given"
        if any(id in str(span.data.get("found")) for span in trace.spans("search"))
        else "read"
    )
