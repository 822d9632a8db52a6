"""Explains why the model received a memory in a turn, or did not: every gate, with its value.

The answer is computed on demand, from the rows and the trace. A trace contains no memory that its turn's
audience could not read, so private, expired and replaced memories are read from the database.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import or_, select

from agent.errors import BadInput
from agent.tracing.store.filters import TraceFilter
from agent.tracing.store.traces import Traces
from agent.tracing.trace import Summary, Trace, mappings, read_data
from agent.tracing.why.gates import (
    Gate,
    Question,
    Why,
    day,
    fitting,
    gate,
    in_summary,
    is_id,
    readable,
    ways,
)
from memory.errors import NotFound
from memory.search.core_facts import IMPORTANT, WEIGHTY, shared_words
from memory.sql.engine import Database
from memory.sql.hidden import link_is_hidden
from memory.sql.memories.memory_rows import begins
from memory.sql.memories.replacements import still_replaces
from memory.sql.tables import memories, memory_owners, memory_updates, replacements


async def why(database: Database, asked: Question, wanted: str) -> list[Why]:
    """Explain the memories whose id is or begins with `wanted`, or that contain all its words. Those of the
    turn's person come first. Raises NotFound if there is none."""
    found = await _links(database, wanted, asked)
    if not found:
        raise NotFound(await _gone(database, wanted))
    return [await _explained(database, asked, links) for links in found.values()]


async def _links(database: Database, wanted: str, asked: Question) -> dict[str, list[Any]]:
    """Return the links of the matching memories, each joined with its memory, by the memory's id."""
    link, best = memory_owners.c, select(memories.c.id)
    if asked.listed is not None:
        best = best.where(memories.c.id.in_(select(link.memory_id).where(link.owner.in_(asked.listed))))
    theirs, at = (memories.c.user_id == asked.person).desc(), memories.c.created_at.desc()
    ids = [row.id for row in await fitting(database, best, memories.c.content, wanted, theirs, at)]
    query = (
        select(memories, link.owner, link_is_hidden().label("hidden"))
        .join(memory_owners, link.memory_id == memories.c.id)
        .where(memories.c.id.in_(ids))
        .order_by(memories.c.id, link.owner)
    )
    links = {id: list(of) for id, of in groupby(await database.rows(query), lambda row: str(row.id))}
    return {id: links[id] for id in ids if id in links}


async def _replaced(database: Database, id: str, at: datetime) -> list[Any]:
    """Return what had replaced the memory at this time, for each owner, with the newer texts."""
    pair, newer = replacements.c, memories.alias()
    by = select(pair.owner, pair.at, pair.reason, newer.c.content)
    by = by.outerjoin(newer, newer.c.id == pair.new_id).where(pair.old_id == id, pair.at <= at)
    return list(await database.rows(by.where(still_replaces()).order_by(pair.at), {"now": at}))


async def _gone(database: Database, wanted: str) -> str:
    """Say that nothing matches; for an id in the history, when and why it changed, without its text."""
    step, id = memory_updates.c, wanted.strip().lower()
    if is_id(id):
        named = or_(begins(step.old_id, id), begins(step.new_id, id))
        for row in await database.rows(select(memory_updates).where(named).order_by(step.created_at.desc())):
            return (
                f"the memory {wanted} is deleted; its last change was on {day(row.created_at)}: {row.reason}"
            )
    return f"no memory matches {wanted!r}: it was never stored, or it is deleted"


async def _explained(database: Database, asked: Question, links: Sequence[Any]) -> Why:
    memory, hidden = links[0], any(link.hidden for link in links)
    gates = list(_row_gates(asked, links, await _replaced(database, memory.id, asked.at)))
    if asked.trace:
        stopped = not all(gate.passed for gate in gates)
        gates += ways(asked, memory.id, "" if stopped else _outside_prompt(asked.trace, memory))
        gates += await in_summary(database, asked, memory.id)
    return Why(memory.id, "" if hidden else memory.content, tuple(gates), in_turn=bool(asked.trace))


def _row_gates(asked: Question, links: Sequence[Any], replaced: Sequence[Any]) -> Iterator[Gate]:
    """Yield the gates that follow from the rows. For a turn: as the rows were then, if known."""
    memory, audience = links[0], asked.audience
    mine = [link for link in links if audience is None or link.owner in audience.keys]
    yield readable(asked, [link.owner for link in links])
    mine = mine or list(links)
    shown = [link for link in mine if not link.hidden]
    yield gate("forgotten", bool(shown), "" if shown else "it can still be restored")
    ended = {step.owner: step for step in replaced}
    steps = [ended[link.owner] for link in shown if link.owner in ended]
    by = f"on {day(steps[0].at)} by “{steps[0].content}” ({steps[0].reason})" if steps else ""
    yield gate("replaced", len(steps) < len(shown) or not shown, by)
    until = memory.expires_at
    expired = until is not None and until <= asked.at
    yield gate(
        "expired", not expired, f"{'on' if expired else 'until'} {day(until)}" if until else "for good"
    )
    if asked.trace:
        in_time = memory.created_at <= asked.at
        yield gate("stated later", in_time, f"on {day(memory.created_at)}", otherwise="stated before")


def _outside_prompt(trace: Trace, memory: Any) -> str:
    """Return why a readable fact is not in the prompt."""
    if memory.user_id != trace.summary.user:
        return "somebody else stated it"
    if memory.importance < IMPORTANT:
        return f"its importance {memory.importance:g} is under {IMPORTANT:g}"
    text = next((str(read_data(scene, "context", "prompt", "text")) for scene in trace.spans("scene")), "")
    if memory.importance < WEIGHTY and not shared_words(text, memory.content, memory.subjects):
        little = f"its importance {memory.importance:g} is under {WEIGHTY:g}"
        return f"it shares no word with the message, and {little}"
    return "other facts filled the space"


async def traces_of(traces: Traces, id: str, now: datetime) -> list[tuple[Summary, str]]:
    """Return the newest traces that show a memory, each with what happened to it there."""
    found = []
    for summary in await traces.list(TraceFilter(kinds=frozenset(), row=id), now):
        try:
            found.append((summary, _part(await traces.get(summary.id, now), id, now)))
        except (NotFound, BadInput):
            found.append((summary, "forgotten"))
    return found


def _part(trace: Trace, id: str, now: datetime) -> str:
    """Return the most important thing that happened to the memory or message in the turn or job."""
    if trace.summary.message_id == id:
        return "said"
    for span in trace.spans("decision"):
        for one in mappings(span.data.get("decisions")):
            if id in (one.get("id"), one.get("target_id")):
                return f"decided: {one.get('action')}, {one.get('reason')}"
    if any(gate.passed for gate in ways(Question(now, None, trace), id)):
        return "given to the model"
    found = any(id in str(span.data.get("found")) for span in trace.spans("search"))
    return "found, not given" if found else "read"
