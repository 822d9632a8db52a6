"""Step 2 of a turn: gather the context for the model.

This step does not search memory; the model does that with its tools.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from typing import TYPE_CHECKING, Any

from agent.turn.context.prompt import Budgets, PromptContext, within_budgets
from agent.types import ReceivedMessage, TurnRequest
from agent.types.client import ClientTurn, Item, MessageItem
from memory.documents.quote import get_rag_context_for_query
from memory.errors import MemoryFault
from memory.process.spans import Traced, span
from memory.records import Memory, Message
from memory.search.core_facts import core_facts, get_relevant_memories
from memory.sql.messages.summaries import owner_of

if TYPE_CHECKING:
    from agent.wiring.components import Components

log = logging.getLogger("hachi.turn")


@dataclass(frozen=True)
class ContextServices:
    """The services that provide the context of a turn."""

    parts: "Components"
    budgets: Budgets
    persona: str
    """The operator's persona; empty selects the default persona."""
    reminds: Callable[[str], bool]
    """Whether reminders can be sent to this user."""


@dataclass(frozen=True, slots=True)
class BuiltContext(Traced):
    prompt: PromptContext
    shown: frozenset[str]
    """Ids of the messages, facts, passages and the summary in the prompt. Searches do not return them
    again."""
    sources: frozenset[str]
    """Ids of the messages, facts, tasks and the summary that the prompt was written from."""
    facts: tuple[Memory, ...] = ()
    """The facts among the sources."""

    def to_trace(self) -> dict[str, Any]:
        """Return it as JSON values, without the client's history: the prompt has the part that is used."""
        client = replace(self.prompt.client, history=None)
        without = replace(self, prompt=replace(self.prompt, client=client), facts=())
        return Traced.to_trace(without)


async def build_context(
    services: ContextServices, received: ReceivedMessage, *, narrow: bool = False
) -> BuiltContext:
    """Read what the model will see. For `narrow` see `PromptContext`."""
    with span("scene") as here:  # the name in stored traces
        built = await _build(services, received)
        built = replace(built, prompt=replace(built.prompt, narrow=narrow))
        if here:
            here.data["context"] = built
    return built


async def _build(services: ContextServices, received: ReceivedMessage) -> BuiltContext:
    request, now = received.request, services.parts.clock()
    prompt = PromptContext(
        now,
        request.speaker,
        request.place,
        received.history or (),
        request.text,
        persona=services.persona,
        budgets=services.budgets,
        instructions=request.instructions,
        client=request.client or ClientTurn(),
        occasion=request.occasion.text if request.occasion else "",
    )
    if request.user is None:
        return BuiltContext(within_budgets(prompt), frozenset(), frozenset())
    place, text = request.place, request.text
    documents, passages = await _documents(services, request)
    history = await _history(services, received)
    active = await services.parts.summaries.of(request.conversation_id, owner_of(request.user, place), now)
    profile = await services.parts.profiles.view(request.user, place, now)
    facts = await core_facts(services.parts.store, request.user, request.person, now)
    tasks = await services.parts.tasks.relevant(request.user, text, place, now=now)
    relevant = get_relevant_memories(facts, text, services.budgets.facts)
    overdue = [task.id for task in tasks if task.due and task.due <= now]
    today = datetime.combine(now.astimezone(profile.zone), time(), profile.zone)
    mentioned = await services.parts.tasks.mentioned(request.user, overdue, today)
    known = replace(profile, long_term_facts=tuple(relevant), open_tasks=tuple(tasks), mentioned=mentioned)
    prompt = within_budgets(
        replace(
            prompt,
            history=history,
            known=known,
            summary=active.summary if active else "",
            knowledge=documents,
            reminders=services.reminds(request.user),
        )
    )
    known = prompt.known
    services.parts.figures.count("", {"retrieved": len(known.long_term_facts)})
    messages = {*_ids(prompt.history), str(received.id)}
    summary = {active.id} if active and prompt.summary else set()
    shown = messages | {fact.id for fact in known.long_term_facts} | summary
    summed_up = facts if known.memory_summary else []
    rest = {task.id for task in known.open_tasks} | {fact.id for fact in summed_up}
    used = (*known.long_term_facts, *summed_up)
    sources = received.sources.union(shown, rest)
    return BuiltContext(prompt, frozenset(shown | passages), sources, used)


async def _history(services: ContextServices, received: ReceivedMessage) -> Sequence[Message | Item]:
    """Return the messages before the question: the client's, or the last ones of the transcript. Both, if the
    client's history continues the stored conversation."""
    if received.history is not None and not received.continues:
        return received.history
    request, limit = received.request, services.parts.settings.history_messages
    if received.history:  # no block is needed: with the client's history first, no server reuses the rest
        last = await services.parts.transcript.last(request.conversation_id, request.audience, limit + 1)
        stored = [message for message in last if message.id != received.id][-limit:]
        return [*received.history, *stored]
    transcript, asked = services.parts.transcript, None if request.occasion else received.id
    return await transcript.block(request.conversation_id, request.audience, limit, asked)


def _ids(history: Sequence[Message | Item]) -> list[str]:
    """Return the ids of the messages that are in the transcript."""
    return [one.id for one in history if isinstance(one, Message | MessageItem) and one.id]


async def _documents(services: ContextServices, request: TurnRequest) -> tuple[str, frozenset[str]]:
    """Return the relevant document passages as one block, and their ids."""
    if not services.parts.settings.knowledge_first:
        return "", frozenset()
    try:
        return await get_rag_context_for_query(
            services.parts.documents,
            request.text,
            request.user,
            request.place,
            characters=services.budgets.knowledge.characters,
        )
    except MemoryFault as error:
        log.warning("answering without documents: %s", error)
        return "", frozenset()
