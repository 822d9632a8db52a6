"""Selects what to consolidate next: the oldest messages of a conversation that its summary does not cover."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from agent.settings import Budget
from agent.turn.jobs import STORE_MEMORIES
from agent.turn.user_snippet import fitting
from memory.audience import Audience, Place
from memory.facts.derived import MEMORY_SUMMARY
from memory.facts.similar import SimilarFacts
from memory.people.profile import UserContext
from memory.people.profile_store import ProfileStore
from memory.people.tasks import Tasks
from memory.records import Memory, Message
from memory.search.core_facts import core_facts, get_relevant_memories
from memory.sql.jobs import JobQueue
from memory.sql.memories import MemoryStore
from memory.sql.messages import Line
from memory.sql.summaries import ConversationSummaries, owner_of
from memory.sql.tables import memories

Mode = Literal["companion", "study", "work"]

MAX_MESSAGES = 6
"""Messages in one slice."""
ANSWERED_WITHIN = timedelta(minutes=10)
"""A message without an answer after this long gets none: its turn has failed."""
KNOWN_FACTS = 20
MAX_PAIRS = 8
NEW_FACTS = 10
"""The summary of the facts is rebuilt after this many new facts."""
FACTS_TO_SUMMARISE = 40


@dataclass(frozen=True, slots=True)
class ConversationSlice:
    """Messages of one person, the answers to them, and what is already known about that person. Without a
    model, it holds only the messages."""

    conversation_id: str
    owner: str
    """``place:P``, or ``user:U`` in private."""
    place: Place
    user: str
    speaker: str
    messages: tuple[Message, ...]
    """Oldest first."""
    summary: str
    """The conversation's summary before these messages."""
    after: int
    """The `seq` of the last message that the summary covers."""
    upto: int
    """The `seq` of the last message of the slice."""
    complete: bool
    """Whether nothing else is left to consolidate."""
    mode: Mode
    known: UserContext
    stored: tuple[Memory, ...]
    """Facts that are already stored from these messages."""
    unclear: tuple[tuple[Memory, Memory], ...]
    """(older, newer) pairs of facts for which it is unclear whether the newer one replaces the older one."""
    to_summarise: tuple[Memory, ...]
    """Facts to summarise, because they do not fit into the prompt; empty if no summary is due."""
    now: datetime

    @property
    def said(self) -> tuple[Message, ...]:
        return tuple(message for message in self.messages if message.role == "user")


@dataclass(frozen=True)
class SliceReader:
    summaries: ConversationSummaries
    profiles: ProfileStore
    store: MemoryStore
    tasks: Tasks
    queue: JobQueue
    similar: SimilarFacts
    clock: Callable[[], datetime]
    with_model: bool
    judging: bool
    """Whether the model also rules on unclear pairs of facts."""
    mode: Mode
    """The mode of conversations without one of their own."""
    budget: Budget
    """The budget of the user context in a prompt. Facts that exceed it need a summary."""

    async def next(self, conversation: str, user: str, place: Place) -> ConversationSlice | None:
        """Return the next slice, or None if the summary covers every answered message."""
        owner, now = owner_of(user, place), self.clock()
        active = await self.summaries.of(conversation, owner)
        after = active.covered if active else 0
        uncovered, complete = await self.summaries.uncovered(conversation, owner, after, MAX_MESSAGES)
        lines = _answered(uncovered, now)
        if not lines:
            return None
        speaker = lines[0].user
        if speaker != user and await self.queue.waiting(STORE_MEMORIES, speaker):
            return None  # their own consolidation runs after that job and sees what it stored
        messages = tuple(line.message for line in lines)
        part = ConversationSlice(
            conversation_id=conversation,
            owner=owner,
            place=place,
            user=speaker,
            speaker=next((m.author for m in reversed(messages) if m.role == "user"), speaker),
            messages=messages,
            summary=active.summary if active else "",
            after=after,
            upto=lines[-1].seq,
            complete=complete,
            mode=_mode(active.mode if active else None, self.mode),
            known=UserContext(),
            stored=(),
            unclear=(),
            to_summarise=(),
            now=now,
        )
        return await self._with_what_is_known(part) if self.with_model else part

    async def _with_what_is_known(self, part: ConversationSlice) -> ConversationSlice:
        user, place = part.user, part.place
        audience = Audience.of(user, place)
        from_these = memories.c.message_id.in_([message.id for message in part.messages])
        stored = [fact for fact in await self.store.where(from_these) if audience.may_read(fact.owners)]
        facts = await core_facts(self.store, user, audience, part.now)
        known = await self.profiles.view(user, place)
        text = " ".join(message.text for message in part.messages)
        tasks = await self.tasks.relevant(user, text, place, now=part.now)
        return replace(
            part,
            known=replace(
                known,
                long_term_facts=tuple(get_relevant_memories(facts, text, limit=KNOWN_FACTS)),
                open_tasks=tuple(tasks),
            ),
            stored=tuple(stored),
            unclear=tuple(await self._unclear(stored)),
            to_summarise=tuple(await self._to_summarise(user, place, known, facts)),
        )

    async def _unclear(self, stored: Sequence[Memory]) -> list[tuple[Memory, Memory]]:
        if not self.judging or not stored:
            return []
        return (await self.similar.doubts_about(stored, self.clock()))[:MAX_PAIRS]

    async def _to_summarise(
        self, user: str, place: Place, known: UserContext, facts: Sequence[Memory]
    ) -> Sequence[Memory]:
        """Return the facts if they exceed the budget and have no summary yet, or if many were added since the
        last one."""
        whole = replace(known, long_term_facts=tuple(facts), memory_summary=None)
        if len(fitting(whole, self.budget, len(facts)).long_term_facts) == len(facts):
            return []
        entries = await self.profiles.entries(user, place)
        since = max((entry.said_at for entry in entries if entry.field == MEMORY_SUMMARY), default=None)
        new = [fact for fact in facts if since is None or fact.created_at > since]
        return facts[:FACTS_TO_SUMMARISE] if since is None or len(new) >= NEW_FACTS else []


def _answered(lines: Sequence[Line], now: datetime) -> Sequence[Line]:
    """Return the lines without trailing messages that wait for an answer: they are consolidated together with
    it."""
    answered = list(lines)
    while answered and answered[-1].message.role == "user":
        answered.pop()
    waiting = any(now - line.message.sent_at < ANSWERED_WITHIN for line in lines[len(answered) :])
    return answered if waiting else lines


def _mode(own: str | None, default: Mode) -> Mode:
    modes: dict[str | None, Mode] = {"companion": "companion", "study": "study", "work": "work"}
    return modes.get(own, default)
