"""The gates on the way of a memory or message to the model in a turn, and who asks for them."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Select, case, func, literal

from agent.tracing.trace import Trace, given_of, mappings, read_data, scored_ids
from memory.audience import PRIVATE, Audience, Place
from memory.index import Kind
from memory.index.searching import Waiting
from memory.process.spans import Span
from memory.search.excerpts import RELEVANT
from memory.sql.engine import Database
from memory.sql.memories.memory_rows import WHOLE_ID, begins
from memory.text.short_ids import SHORT_ID

FITTING = 10
"""The most memories that are explained."""
LANES = {"words": "in words", "dense": "in meaning"}
NOT_LOOKED_FOR = "not looked for, by what is said above"


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


async def fitting(
    database: Database, query: Select[Any], text: ColumnElement[str], at: ColumnElement[Any], wanted: str
) -> Sequence[Any]:
    """Return the rows with this id, or beginning of an id, or those whose text holds most of the words."""
    wanted = wanted.strip().lower()
    if is_id(wanted):
        return await database.rows(query.where(begins(query.selected_columns.id, wanted)).limit(FITTING))
    words = dict.fromkeys(re.findall(r"\w+", wanted))
    holds = [case((func.lower(text).contains(word, autoescape=True), 1), else_=0) for word in words]
    shared: ColumnElement[int] = sum(holds, literal(0))
    query = query.add_columns(shared.label("shared")).where(shared > 0)
    rows = await database.rows(query.order_by(shared.desc(), at.desc()).limit(FITTING))
    return [row for row in rows if row.shared == rows[0].shared]


def is_id(wanted: str) -> bool:
    return re.fullmatch(rf"[0-9a-f-]{{{SHORT_ID},{WHOLE_ID}}}", wanted) is not None


def indexed(waiting: Waiting, kind: Kind, id: str) -> Gate:
    late = "not yet: a search reads its row meanwhile" if id in waiting.ids.get(kind, ()) else None
    return Gate("indexed", not (waiting.why or late), waiting.why or late or "yes")


def may_read(asked: Asked, owners: Collection[str]) -> Gate:
    """Return whether who reads may read what is of these."""
    told, audience = ", ".join(owners), asked.audience
    if audience is None:
        return Gate("may be read", True, f"by {told}")
    reads = ", ".join(sorted(audience.keys)) or "nothing"
    return Gate("may be read here", audience.may_read(owners), f"it is of {told}; read is {reads}")


def day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment else "no day"


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
