"""Explains what became of a memory, a message, a summary or a passage of a document: every gate between the
text and the model, with its value.

The answer is computed on demand, from the rows and the trace. A trace contains no memory that its turn's
audience could not read, so private, expired and replaced memories are read from the database.
"""

import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, exists, func, or_, select

from agent.errors import BadInput
from agent.tracing.store.filters import TraceFilter
from agent.tracing.store.traces import Traces
from agent.tracing.trace import Summary, Trace, decisions_of, read_data
from agent.tracing.why.gates import Gate, Kind, Question, Why, day, gate, in_summary, readable, ways
from agent.tracing.why.message_facts import facts_gate
from memory.errors import NotFound
from memory.search.core_facts import IMPORTANT, WEIGHTY, shared_words
from memory.sql.engine import Database
from memory.sql.hidden import link_is_hidden
from memory.sql.memories.memory_rows import WHOLE_ID, begins
from memory.sql.memories.replacements import still_replaces
from memory.sql.messages.message_rows import LINES, is_visible, to_line
from memory.sql.tables import active_conversations as summaries
from memory.sql.tables import (
    knowledge_chunks,
    knowledge_documents,
    memories,
    memory_owners,
    memory_updates,
    messages,
    replacements,
)
from memory.text.quoting import SHORT_ID

MOST_MEMORIES, MOST = 10, 3
"""The most memories, and the most texts of each other kind, that are explained."""

Fitting = AsyncIterator[tuple[Any, str, list[Gate], str]]
"""Texts that fit: a row with its `id`, the text, the gates that follow from rows, and why it is not in the
prompt if it is not."""


async def explain(
    traces: Traces, asked: Question, wanted: str, kinds: Collection[Kind] | None = None
) -> list[Why]:
    """Explain the texts of these kinds, by default of all, whose id is or begins with `wanted`, or that
    contain all its words. Those of the turn's person come first. A message that led to a fact is left out,
    unless the model received it. Raises NotFound if there is none."""
    found = []
    for kind in kinds or KINDS:
        async for row, text, gates, outside in KINDS[kind](traces.database, asked, wanted):
            if kind == "message":
                gates.append(await facts_gate(traces, asked, row))
            gates += ways(asked, row.id, outside, kind=kind)
            if kind in ("memory", "message"):
                gates += await in_summary(traces.database, asked, row.id)
            one = Why(row.id, text, tuple(gates), kind, bool(asked.trace))
            if one.received or "remembered" not in {gate.name for gate in gates}:
                found.append(one)
    if not found:
        raise NotFound(await _gone(traces.database, wanted))
    return found


async def _fitting(
    database: Database, query: Select[Any], text: ColumnElement[str], wanted: str, most: int = MOST
) -> Sequence[Any]:
    """Return the rows whose id is or begins with `wanted`, or whose text contains all its words."""
    if _is_id(wanted := wanted.strip().lower()):
        fits = [begins(query.selected_columns.id, wanted)]
    else:
        fits = [_holds(text, word) for word in dict.fromkeys(re.findall(r"\w+", wanted))]
    return await database.rows(query.where(*fits).limit(most)) if fits else []


def _is_id(wanted: str) -> bool:
    return re.fullmatch(rf"[0-9a-f-]{{{SHORT_ID},{WHOLE_ID}}}", wanted) is not None


def _holds(text: ColumnElement[str], word: str) -> ColumnElement[bool]:
    """Return the condition that the text contains the word in any case. SQLite folds only ASCII."""
    spellings = {word, word.capitalize(), word.upper()} if not word.isascii() else {word}
    return or_(
        func.lower(text).contains(word, autoescape=True),
        *(text.contains(one, autoescape=True) for one in sorted(spellings)),
    )


async def _gone(database: Database, wanted: str) -> str:
    """Say that nothing matches; for an id in the history, when and why it changed, without its text."""
    step, id = memory_updates.c, wanted.strip().lower()
    if _is_id(id):
        named = or_(begins(step.old_id, id), begins(step.new_id, id))
        for row in await database.rows(select(memory_updates).where(named).order_by(step.created_at.desc())):
            return (
                f"the memory {wanted} is deleted; its last change was on {day(row.created_at)}: {row.reason}"
            )
    return f"no memory matches {wanted!r}: it was never stored, or it is deleted"


async def _memories(database: Database, asked: Question, wanted: str) -> Fitting:
    link = memory_owners.c
    linked = asked.listed_in(select(link.memory_id), link.owner)
    hidden = exists().where(link.memory_id == memories.c.id, link_is_hidden()).label("hidden")
    query = select(memories, hidden).where(memories.c.id.in_(linked))
    query = query.order_by((memories.c.user_id == asked.person).desc(), memories.c.created_at.desc())
    for memory in await _fitting(database, query, memories.c.content, wanted, MOST_MEMORIES):
        gates = await _memory_gates(database, asked, memory)
        outside = _outside_prompt(asked.trace, memory) if all(gate.passed for gate in gates) else ""
        yield memory, "" if memory.hidden else memory.content, gates, outside


async def _memory_gates(database: Database, asked: Question, memory: Any) -> list[Gate]:
    """Return the gates that follow from the rows. For a turn: as the rows were then, if known."""
    link, audience = memory_owners.c, asked.audience
    query = select(link.owner, link_is_hidden().label("hidden")).where(link.memory_id == memory.id)
    links = await database.rows(query.order_by(link.owner))
    mine = [one for one in links if audience is None or one.owner in audience.keys] or links
    shown = [one for one in mine if not one.hidden]
    replaced = {step.owner: step for step in await _replaced(database, memory.id, asked.at)}
    steps = [replaced[one.owner] for one in shown if one.owner in replaced]
    by = f"on {day(steps[0].at)} by “{steps[0].content}” ({steps[0].reason})" if steps else ""
    until, in_time = memory.expires_at, memory.created_at <= asked.at
    expired = until is not None and until <= asked.at
    lasts = f"{'on' if expired else 'until'} {day(until)}" if until else "for good"
    gates = [
        readable(asked, [one.owner for one in links]),
        gate("forgotten", bool(shown), "" if shown else "it can still be restored"),
        gate("replaced", len(steps) < len(shown) or not shown, by),
        gate("expired", not expired, lasts),
    ]
    if asked.trace:
        gates.append(gate("stated later", in_time, f"on {day(memory.created_at)}", otherwise="stated before"))
    return gates


async def _replaced(database: Database, id: str, at: datetime) -> Sequence[Any]:
    """Return what had replaced the memory at this time, for each owner, with the newer texts."""
    pair, newer = replacements.c, memories.alias()
    by = select(pair.owner, pair.at, pair.reason, newer.c.content)
    by = by.outerjoin(newer, newer.c.id == pair.new_id).where(pair.old_id == id, pair.at <= at)
    return await database.rows(by.where(still_replaces()).order_by(pair.at), {"now": at})


def _outside_prompt(trace: Trace | None, memory: Any) -> str:
    """Return why a readable fact is not in the prompt of the turn."""
    if trace is None:
        return ""
    if memory.user_id != trace.summary.user:
        return "somebody else stated it"
    if memory.importance < IMPORTANT:
        return f"its importance {memory.importance:g} is under {IMPORTANT:g}"
    text = next((str(read_data(scene, "context", "prompt", "text")) for scene in trace.spans("scene")), "")
    if memory.importance < WEIGHTY and not shared_words(text, memory.content, memory.subjects):
        little = f"its importance {memory.importance:g} is under {WEIGHTY:g}"
        return f"it shares no word with the message, and {little}"
    return "other facts filled the space"


async def _messages(database: Database, asked: Question, wanted: str) -> Fitting:
    query = LINES.where(messages.c.role == "user", is_visible(), messages.c.sent_at <= asked.at)
    if asked.trace and asked.trace.summary.message_id:
        query = query.where(messages.c.id != asked.trace.summary.message_id)
    if asked.user is not None:
        query = query.where(messages.c.user_id == asked.user)
    query = query.order_by((messages.c.user_id == asked.person).desc(), messages.c.seq.desc())
    outside = "it is not among the last messages of the conversation"
    for row in await _fitting(database, query, messages.c.text, wanted):
        yield row, f"{row.author}: {row.text}", [readable(asked, sorted(to_line(row).owners))], outside


async def _summaries(database: Database, asked: Question, wanted: str) -> Fitting:
    query = asked.listed_in(select(summaries), summaries.c.owner).order_by(summaries.c.updated_at.desc())
    for row in await _fitting(database, query, summaries.c.summary, wanted):
        gates = [readable(asked, [row.owner]), gate("withheld", not row.withheld, "it has to be rewritten")]
        yield row, row.summary, gates, f"of the conversation {row.conversation_id}"


async def _passages(database: Database, asked: Question, wanted: str) -> Fitting:
    chunk, document = knowledge_chunks.c, knowledge_documents.c
    query = select(chunk.id, chunk.text, document.owner, document.title, document.added_at)
    query = query.join(knowledge_documents, document.id == chunk.document_id).order_by(chunk.id)
    outside = "only passages close to the message are quoted before it"
    for row in await _fitting(database, asked.listed_in(query, document.owner), chunk.text, wanted):
        later = gate("added later", row.added_at <= asked.at, otherwise="added before")
        yield row, f"{row.title}: {row.text}", [readable(asked, [row.owner]), later], outside


KINDS: Mapping[Kind, Callable[[Database, Question, str], Fitting]] = {
    "memory": _memories,
    "message": _messages,
    "summary": _summaries,
    "document": _passages,
}


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
    for one in decisions_of(trace):
        if id in (one.get("id"), one.get("target_id")):
            return f"decided: {one.get('action')}, {one.get('reason')}"
    if any(gate.passed for gate in ways(Question(now, None, trace), id)):
        return "given to the model"
    found = any(id in str(span.data.get("found")) for span in trace.spans("search"))
    return "found, not given" if found else "read"
