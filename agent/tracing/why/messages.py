"""Explains what became of a message: which facts it led to, or why none, and whether the model saw it in a
turn. Also explains why the model received a summary or a passage of a document, or did not."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from sqlalchemy import or_, select

from agent.errors import BadInput
from agent.tracing.store.filters import TraceFilter
from agent.tracing.store.traces import Traces
from agent.tracing.trace import mappings
from agent.tracing.why.gates import Gate, Question, Why, day, fitting, gate, in_summary, readable, ways
from agent.tracing.why.memories import why
from memory.audience import user_key
from memory.errors import NotFound
from memory.sql.engine import Database
from memory.sql.hidden import link_is_hidden
from memory.sql.jobs.job import MAX_ATTEMPTS
from memory.sql.messages.message_rows import LINES, is_visible, to_line
from memory.sql.messages.summaries import CONSOLIDATE, consolidation_subject
from memory.sql.rests_on import stated_in
from memory.sql.tables import active_conversations as summaries
from memory.sql.tables import knowledge_chunks, knowledge_documents, memories, memory_owners, messages, work

MOST = 3
"""The most messages, summaries and passages that are explained; the newest of each."""
TRACES = 50
"""The most traces that are searched for a message, newest first."""


async def explain(database: Database, traces: Traces, asked: Question, wanted: str) -> list[Why]:
    """Explain all matches: memories, as `why` does; messages that led to no fact, or that the model received;
    summaries and documents. Raises NotFound if nothing matches."""
    said = [await _said(database, traces, asked, row) for row in await _fitting(database, asked, wanted)]
    others = [one for one in said if one.received or not one.gates[1].passed]
    others += await explain_texts(database, asked, wanted)
    try:
        return [*await why(database, asked, wanted), *others]
    except NotFound:
        if others:
            return others
        raise


async def _fitting(database: Database, asked: Question, wanted: str) -> Sequence[Any]:
    query = LINES.where(messages.c.role == "user", is_visible(), messages.c.sent_at <= asked.at)
    if asked.trace and asked.trace.summary.message_id:
        query = query.where(messages.c.id != asked.trace.summary.message_id)
    if asked.user is not None:
        query = query.where(messages.c.user_id == asked.user)
    theirs, at = (messages.c.user_id == asked.person).desc(), messages.c.seq.desc()
    return await fitting(database, query, messages.c.text, wanted, theirs, at, most=MOST)


async def _said(database: Database, traces: Traces, asked: Question, row: Any) -> Why:
    gates = [readable(asked, sorted(to_line(row).owners)), await _remembered(database, traces, asked, row)]
    if asked.trace:
        gates += ways(asked, row.id, "it is not among the last messages of the conversation", kind="message")
        gates += await in_summary(database, asked, row.id)
    return Why(row.id, f"{row.author}: {row.text}", tuple(gates), "message", bool(asked.trace))


async def _remembered(database: Database, traces: Traces, asked: Question, message: Any) -> Gate:
    """Return the gate that lists the facts from a message, or says why there are none."""
    query = select(memories.c.id, memories.c.content).join(memory_owners).distinct()
    of_it = or_(memories.c.message_id == message.id, memories.c.id.in_(stated_in([message.id])))
    if facts := await database.rows(query.where(of_it, ~link_is_hidden())):
        return Gate("remembered", True, "as " + ", ".join(f"“{one.content}”" for one in facts))
    decided = [told async for told in _decided(traces, asked, message.id)]
    told = [*(decided or ["the answer stored nothing of it"]), *await _waits(database, asked, message)]
    return Gate("not remembered", False, "; ".join(dict.fromkeys(told)))


async def _decided(traces: Traces, asked: Question, message: str) -> AsyncIterator[str]:
    """Yield the decisions about a message by the turn and the jobs after it, from their traces, oldest
    first."""
    shown = await traces.list(TraceFilter(kinds=frozenset(), row=message), asked.now, TRACES)
    turns = {one.id for one in shown if one.message_id == message}
    for summary in reversed(shown):
        if not (summary.id in turns or summary.turn_id in turns or summary.kind == CONSOLIDATE):
            continue
        try:
            trace = await traces.get(summary.id, asked.now)
        except (NotFound, BadInput):
            continue
        made = [one for span in trace.spans("decision") for one in mappings(span.data.get("decisions"))]
        for one in made:
            yield f"{_decision(one)} ({summary.short})"
        if summary.kind == CONSOLIDATE and summary.status == "malformed":
            yield f"a consolidation had an incomplete answer ({summary.short})"
        elif summary.kind == CONSOLIDATE and summary.status == "ok" and not made:
            yield f"a consolidation read it and stored nothing ({summary.short})"


def _decision(one: Mapping[str, Any]) -> str:
    if one.get("action") == "ignore":
        return f"“{one.get('content')}” was not stored: {one.get('reason')}"
    until = str(one.get("expires_at") or "")[: len("2026-11-24T10:30")].replace("T", " ")
    return f"“{one.get('content')}” was stored {f'until {until} ' * bool(until)}and is gone"


async def _waits(database: Database, asked: Question, message: Any) -> list[str]:
    """Say what the consolidation of a message waits for."""
    owner, active = message.place or user_key(message.user_id), summaries.c
    here = active.conversation_id == message.conversation_id, active.owner == owner
    if await database.rows(select(active.id).where(*here, active.covered >= message.seq)):
        return []
    about = consolidation_subject(message.conversation_id, owner)
    jobs = await database.rows(select(work).where(work.c.kind == CONSOLIDATE, work.c.about == about))
    return [
        f"its consolidation {_state(job, asked)}{f': {job.last_error}' * bool(job.last_error)}"
        for job in jobs
    ]


def _state(job: Any, asked: Question) -> str:
    if job.attempts >= MAX_ATTEMPTS:
        return "was given up"
    due = f"is due since {day(job.due_at)}" if job.due_at <= asked.now else f"waits until {day(job.due_at)}"
    return f"failed {job.attempts}×, and {due}" if job.attempts else due


async def explain_texts(database: Database, asked: Question, wanted: str) -> list[Why]:
    """Explain the summaries and the passages of documents that fit."""
    return [*await _summaries(database, asked, wanted), *await _passages(database, asked, wanted)]


async def _summaries(database: Database, asked: Question, wanted: str) -> list[Why]:
    c = summaries.c
    query = select(c.id, c.owner, c.summary, c.withheld, c.conversation_id)
    if asked.listed is not None:
        query = query.where(c.owner.in_(asked.listed))
    found = []
    for row in await fitting(database, query, c.summary, wanted, c.updated_at.desc(), most=MOST):
        told = f"of the conversation {row.conversation_id}"
        gates = [
            readable(asked, [row.owner]),
            gate("withheld", not row.withheld, "it has to be rewritten"),
        ]
        gates += ways(asked, row.id, told, kind="summary")
        found.append(Why(row.id, row.summary, tuple(gates), "summary", bool(asked.trace)))
    return found


async def _passages(database: Database, asked: Question, wanted: str) -> list[Why]:
    chunk, document = knowledge_chunks.c, knowledge_documents.c
    query = select(chunk.id, chunk.text, document.owner, document.title, document.added_at)
    query = query.join(knowledge_documents, document.id == chunk.document_id)
    if asked.listed is not None:
        query = query.where(document.owner.in_(asked.listed))
    found = []
    for row in await fitting(database, query, chunk.text, wanted, chunk.id, most=MOST):
        in_time = row.added_at <= asked.at
        gates = [readable(asked, [row.owner]), gate("added later", in_time, otherwise="added before")]
        gates += ways(
            asked, row.id, "only passages close to the message are quoted before it", kind="document"
        )
        found.append(Why(row.id, f"{row.title}: {row.text}", tuple(gates), "document", bool(asked.trace)))
    return found
