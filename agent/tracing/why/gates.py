"""The gates between a text and the model in a turn, and who asks about them."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Select, and_, or_, select

from agent.tracing.trace import Trace, mappings, read_data, scored_ids, shown_ids
from memory.audience import GLOBAL, PRIVATE, Audience, Place, user_key
from memory.process.spans import Span
from memory.search.excerpts import RELEVANT
from memory.sql.engine import Database
from memory.sql.tables import active_conversations as summaries
from memory.sql.tables import messages, rests_on

LANES = {"words": "in words", "dense": "in meaning"}
Kind = Literal["memory", "message", "summary", "document"]


@dataclass(frozen=True, slots=True)
class Gate:
    name: str
    """What happened: ``replaced``, ``not replaced``, ``in another place`` …"""
    passed: bool
    value: str
    way: bool = False
    """Whether it is one of several ways to the model; passing one of them is enough."""


@dataclass(frozen=True, slots=True)
class Why:
    id: str
    content: str
    """The text; empty if it is forgotten."""
    gates: tuple[Gate, ...]
    """The gates, in the order in which the text meets them."""
    kind: Kind = "memory"
    in_turn: bool = True
    """Whether the question is about a turn."""

    @property
    def received(self) -> bool | None:
        """Return whether the model received the text in the turn; None if the question is about no turn."""
        return any(gate.passed for gate in self.gates if gate.way) if self.in_turn else None

    @property
    def stopped_at(self) -> Gate | None:
        """Return the first gate that stopped the text. If only ways to the model failed: the last one."""
        if self.received:
            return None
        failed = [gate for gate in self.gates if not gate.passed]
        return next((gate for gate in failed if not gate.way), failed[-1] if failed else None)


@dataclass(frozen=True, slots=True)
class Question:
    """Who asks why, and about which turn."""

    now: datetime
    user: str | None
    """The person, whose readable texts are explained; None: all texts, for the operator."""
    trace: Trace | None = None
    linked: Sequence[str] = ()
    """The person's other accounts, used when the question is about no turn."""

    @property
    def audience(self) -> Audience | None:
        """Return the audience: the turn's, or the person in private; None for the operator without a turn."""
        if self.trace:
            own = Audience.of(self.trace.summary.user, Place.of_key(self.trace.summary.place)).keys
            searches = self.trace.spans("search")  # in private, searches may read more
            return Audience(own.union(*(map(str, one.data.get("audience") or ()) for one in searches)))
        linked = {user_key(one): one for one in self.linked}
        return None if self.user is None else Audience.of(self.user, PRIVATE, linked)

    @property
    def person(self) -> str | None:
        """Return the person whose texts are listed first."""
        return self.trace.summary.user if self.trace else self.user

    def listed_in(self, query: Select[Any], owner: ColumnElement[str]) -> Select[Any]:
        """Limit the query to rows whose owner's texts may be explained."""
        if self.user is None:
            return query
        return query.where(owner.in_([*map(user_key, (self.user, *self.linked)), GLOBAL]))

    @property
    def at(self) -> datetime:
        return self.trace.summary.started_at if self.trace else self.now

    @property
    def shown(self) -> frozenset[str]:
        """Return the ids of the texts in the turn's prompt."""
        scenes = self.trace.spans("scene") if self.trace else ()
        return frozenset(id for scene in scenes for id in read_data(scene, "context", "shown") or ())


def readable(asked: Question, owners: Collection[str]) -> Gate:
    """Return the gate that says whether the reader may read rows of these owners."""
    told, audience = ", ".join(owners), asked.audience
    if audience is None:
        return Gate("readable", True, f"by {told}")
    reads = f"owned by {told}; the reader may read {', '.join(sorted(audience.keys)) or 'nothing'}"
    if audience.may_read(owners):
        return Gate("readable here", True, reads)
    if asked.person is not None and user_key(asked.person) in owners:
        return Gate("private", False, reads)
    elsewhere = any(owner.startswith("place:") for owner in owners)
    return Gate("in another place" if elsewhere else "somebody else's", False, reads)


def gate(name: str, passed: bool, value: str = "", *, otherwise: str = "") -> Gate:
    """Return a gate: if it stopped the text, its name is `name`; if the text passed, ``not NAME`` or
    `otherwise`."""
    return Gate((otherwise or f"not {name}") if passed else name, passed, value)


def day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment else "no day"


def ways(asked: Question, id: str, outside: str = "", *, kind: Kind = "memory") -> Iterator[Gate]:
    """Yield a gate for the prompt and one for each search of the turn. `outside` says why the text is not in
    the prompt."""
    if asked.trace is None:
        return
    seen = id in asked.shown
    yield Gate("in the prompt" if seen else "not in the prompt", seen, "" if seen else outside, way=True)
    for search in asked.trace.spans("documents" if kind == "document" else "search"):
        query = search.data.get("query")
        where = f"search “{query}”" if query else "list of the newest"
        found = id in shown_ids(search)
        name, why = ("given", "") if found else ("shown already", "") if seen else _missed(search, id)
        seen = seen or found
        yield Gate(name, found, ", ".join(filter(None, [where, *_scores(search, id), why])), way=True)


def _missed(search: Span, id: str) -> tuple[str, str]:
    """For a search whose result for the model lacks the text, return the name of the gate and the reason."""
    found = dict(scored_ids(search))
    if id in found:
        best = max(*found.values(), float(search.data.get("best") or 0.0))
        if found[id] < RELEVANT * best:
            return "scored too low", f"its score is under {RELEVANT:g} of the best one, {best:g}"
        return "cut off", "found, but the result was full"
    here = next((one for one in mappings(search.data.get("candidates")) if one.get("id") == id), None)
    if here and here.get("left_out"):
        return "left out", str(here["left_out"])
    far = "neither its words nor its meaning match the question well enough"
    return "not found", far if search.data.get("query") else ""


def _scores(search: Span, id: str) -> list[str]:
    """Return the text's ranks by words and by meaning, and its score, as far as the search recorded them."""
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


async def in_summary(database: Database, asked: Question, id: str) -> list[Gate]:
    """Return the gate that says whether the summary in the turn's prompt covers this fact or message; empty
    if there was no summary."""
    c = summaries.c
    shown = select(c.id, c.summary).where(c.id.in_(asked.shown))
    if not (asked.shown and await database.rows(shown)):
        return []
    stated = select(rests_on.c.derived_id).where(rests_on.c.source_id == id, rests_on.c.how == "covered")
    here = and_(messages.c.conversation_id == c.conversation_id, messages.c.seq <= c.covered)
    said = select(messages.c.id).where(messages.c.id == id, here).exists()
    covering = await database.rows(shown.where(or_(c.id.in_(stated), said)))
    told = [f"it covers this; its text now: “{row.summary}”" for row in covering]
    return [Gate("in a summary" if told else "not in the summary", bool(told), "".join(told), way=True)]
