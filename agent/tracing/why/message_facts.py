"""Says which facts a message led to, or why it led to none."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from sqlalchemy import or_, select

from agent.errors import BadInput
from agent.tracing.store.filters import TraceFilter
from agent.tracing.store.traces import Traces
from agent.tracing.trace import decisions_of
from agent.tracing.why.gates import Gate, Question, day
from memory.audience import user_key
from memory.errors import NotFound
from memory.sql.hidden import link_is_hidden
from memory.sql.jobs.job import MAX_ATTEMPTS
from memory.sql.messages.summaries import CONSOLIDATE, consolidation_subject
from memory.sql.rests_on import stated_in
from memory.sql.tables import active_conversations as summaries
from memory.sql.tables import memories, memory_owners, work

TRACES = 50
"""The most traces that are searched for a message, newest first."""


async def facts_gate(traces: Traces, asked: Question, message: Any) -> Gate:
    """Return the gate that lists the facts from a message, or says why there are none."""
    query = select(memories.c.id, memories.c.content).join(memory_owners).distinct()
    of_it = or_(memories.c.message_id == message.id, memories.c.id.in_(stated_in([message.id])))
    if facts := await traces.database.rows(query.where(of_it, ~link_is_hidden())):
        return Gate("remembered", True, "as " + ", ".join(f"“{one.content}”" for one in facts))
    decided = [told async for told in _decided(traces, asked, message.id)]
    told = [*(decided or ["the answer stored nothing of it"]), *await _pending(traces, asked, message)]
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
        made = decisions_of(trace)
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


async def _pending(traces: Traces, asked: Question, message: Any) -> list[str]:
    """Say what the consolidation of a message waits for."""
    owner, active = message.place or user_key(message.user_id), summaries.c
    here = active.conversation_id == message.conversation_id, active.owner == owner
    if await traces.database.rows(select(active.id).where(*here, active.covered >= message.seq)):
        return []
    about = consolidation_subject(message.conversation_id, owner)
    jobs = select(work).where(work.c.kind == CONSOLIDATE, work.c.about == about)
    return [
        f"its consolidation {_state(job, asked)}{f': {job.last_error}' * bool(job.last_error)}"
        for job in await traces.database.rows(jobs)
    ]


def _state(job: Any, asked: Question) -> str:
    if job.attempts >= MAX_ATTEMPTS:
        return "was given up"
    due = f"is due since {day(job.due_at)}" if job.due_at <= asked.now else f"waits until {day(job.due_at)}"
    return f"failed {job.attempts}×, and {due}" if job.attempts else due
