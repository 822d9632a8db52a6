"""Selects what to consolidate next: the oldest messages of a conversation that its summary does not cover."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from sqlalchemy import and_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.settings import Budget
from agent.turn.user_snippet import fitting
from memory.audience import Audience, Place
from memory.facts.candidate import Provenance
from memory.facts.derived.sources import MEMORY_SUMMARY, no_longer, remaining
from memory.facts.similar import SimilarFacts
from memory.people.profile import UserContext
from memory.people.profile_entries import context_of, messages_of
from memory.people.profile_store import ProfileStore
from memory.people.tasks import Tasks
from memory.records import Memory, Message
from memory.search.core_facts import core_facts, most_relevant
from memory.sql.memories import MemoryStore
from memory.sql.memory_rows import unexpired
from memory.sql.message_rows import Line, kept
from memory.sql.summaries import ConversationSummaries, heard_by, owner_of
from memory.sql.tables import memories, messages
from memory.text import sentences
from memory.text.tags import tag, tags

Mode = Literal["companion", "study", "work"]

MAX_MESSAGES = 6
"""Messages in one slice."""
ANSWERED_WITHIN = timedelta(minutes=10)
"""A message without an answer after this long gets none: its turn has failed."""
KNOWN_FACTS = 20
MAX_NEAR = 16
"""Known facts that the model may rule on, beside those in the user context."""
MAX_TEXTS = 16
"""Statements around which known facts are looked for."""
MAX_WORDS = 40
"""Words of a statement that are tried as tags."""
FINISHED_TASKS, FINISHED_SINCE = 5, timedelta(days=7)
"""The tasks last finished, which the model sees so that it does not report or open them again."""
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
    no_longer: tuple[str, ...]
    """The facts of the messages, and of the `earlier` ones, that no longer hold."""
    summary: str
    """The conversation's summary before these messages; empty if it was withheld."""
    revision: int
    """Of that summary."""
    earlier: tuple[Message, ...]
    """What people said before these messages, where the summary is to be rebuilt."""
    profile_messages: frozenset[str]
    """The ids of the messages that the profile in `known` rests on."""
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
    near: tuple[Memory, ...]
    """Known facts of the same person that these messages, or what is stored from them, may concern; empty if
    the model does not rule on facts."""
    judged: bool
    """Whether the model rules on facts."""
    to_summarise: tuple[Memory, ...]
    """Facts to summarise, because they do not fit into the prompt; empty if no summary is due."""
    now: datetime

    @property
    def rulable(self) -> bool:
        """Whether something was newly noted, and the model has known facts to rule on it with."""
        return self.judged and bool(self.stored) and bool(self.near or self.known.long_term_facts)

    @property
    def said(self) -> tuple[Message, ...]:
        return tuple(message for message in self.messages if message.role == "user")

    @property
    def shown(self) -> tuple[Memory, ...]:
        """All facts that the model is given."""
        return (*self.known.long_term_facts, *self.stored, *self.near, *self.to_summarise)

    @property
    def facts(self) -> frozenset[str]:
        """The ids of `shown`."""
        return frozenset(fact.id for fact in self.shown)


@dataclass(frozen=True)
class SliceReader:
    summaries: ConversationSummaries
    profiles: ProfileStore
    store: MemoryStore
    tasks: Tasks
    similar: SimilarFacts
    clock: Callable[[], datetime]
    with_model: bool
    judging: bool
    """Whether the model also rules on facts that may repeat or contradict each other."""
    mode: Mode
    """The mode of conversations without one of their own."""
    reread: int
    """From how many messages of people a summary that was withheld is rebuilt: the newest that it covered."""
    budget: Budget
    """The budget of the user context in a prompt. Facts that exceed it need a summary."""

    async def next(self, conversation: str, user: str, place: Place) -> ConversationSlice | None:
        """Return the next slice, or None if the summary covers every answered message. A slice without
        messages, after which nothing follows, rebuilds what was withheld or writes a summary that is due."""
        part = await self._read(conversation, user, place)
        if part is None:
            return None
        part = await self._with_what_is_known(part) if self.with_model else part
        due = part.earlier or (part.complete and part.to_summarise)
        return part if part.upto > part.after or due else None

    async def are_left(self, connection: AsyncConnection, part: ConversationSlice) -> bool:
        """Whether messages follow that the slice does not hold."""
        later = messages.c.conversation_id == part.conversation_id, messages.c.seq > part.upto
        found = select(messages.c.seq).where(*later, heard_by() == part.owner, kept()).limit(1)
        return (await connection.execute(found)).first() is not None

    async def _read(self, conversation: str, user: str, place: Place) -> ConversationSlice | None:
        """Return the next messages of a conversation, without what is known."""
        owner, now = owner_of(user, place), self.clock()
        active = await self.summaries.of(conversation, owner, now)
        after = active.covered if active else 0
        uncovered, complete = await self.summaries.uncovered(conversation, owner, after, MAX_MESSAGES)
        lines = _answered(uncovered, now)
        speaker = lines[0].user if lines else user
        heard = tuple(line.message for line in lines)
        async with self.store.database.read() as connection:
            earlier: Sequence[Message] = ()
            if active and active.withheld:
                earlier = await remaining(connection, conversation, owner, active.covered, self.reread)
            ids = [message.id for message in (*heard, *earlier)]
            over = await no_longer(connection, ids, owner, now)
        return ConversationSlice(
            conversation_id=conversation,
            owner=owner,
            place=place,
            user=speaker,
            speaker=next((m.author for m in reversed(heard) if m.role == "user"), speaker),
            messages=heard,
            no_longer=over,
            summary=active.summary if active else "",
            revision=active.revision if active else 0,
            earlier=tuple(earlier),
            profile_messages=frozenset(),
            after=after,
            upto=lines[-1].seq if lines else after,
            complete=complete,
            mode=_mode(active.mode if active else None, self.mode),
            known=UserContext(),
            stored=(),
            near=(),
            judged=self.judging,
            to_summarise=(),
            now=now,
        )

    async def _with_what_is_known(self, part: ConversationSlice) -> ConversationSlice:
        user, place = part.user, part.place
        audience = Audience.of(user, place)
        from_these = memories.c.message_id.in_([message.id for message in part.messages])
        stored = await self.store.where(and_(from_these, unexpired(part.now)))
        stored = [fact for fact in stored if audience.may_read(fact.owners)]
        near = await self._near(part, stored)
        facts = await core_facts(self.store, user, audience, part.now)
        entries = await self.profiles.readable(user, place, part.now)
        profile = [entry for entry in entries if entry.field != MEMORY_SUMMARY]
        summarised = max((e.said_at for e in entries if e.field == MEMORY_SUMMARY and e.value), default=None)
        text = " ".join(message.text for message in (*part.earlier, *part.messages))
        tasks = await self.tasks.relevant(user, text, place, now=part.now)
        known = context_of(
            profile,
            long_term_facts=[
                fact
                for fact in most_relevant(facts, text, limit=KNOWN_FACTS)
                if fact not in near and fact not in stored
            ],
            open_tasks=tasks,
        )
        finished = await self.tasks.finished(user, place, part.now - FINISHED_SINCE, FINISHED_TASKS)
        return replace(
            part,
            known=replace(known, open_tasks=(*tasks, *finished)),
            profile_messages=messages_of(profile),
            stored=tuple(stored),
            near=tuple(near),
            to_summarise=tuple(self._to_summarise(known, facts, summarised)),
        )

    async def _near(self, part: ConversationSlice, stored: Sequence[Memory]) -> list[Memory]:
        """Return the known facts that the messages may concern, the nearest first."""
        if not self.judging or not part.said:
            return []
        origin = Provenance(part.user, part.now, part.place)
        found = await self.similar.around(_statements(part, stored), origin, MAX_NEAR + len(stored))
        return [fact for fact in found if fact not in stored][:MAX_NEAR]

    def _to_summarise(
        self, known: UserContext, facts: Sequence[Memory], since: datetime | None
    ) -> Sequence[Memory]:
        """Return the facts if they exceed the budget and have no summary yet, or if many were added since the
        last one."""
        whole = replace(known, long_term_facts=tuple(facts))
        if len(fitting(whole, self.budget, len(facts)).long_term_facts) == len(facts):
            return []
        told = facts[:FACTS_TO_SUMMARISE]
        new = [fact for fact in told if since is None or fact.created_at > since]
        return told if since is None or len(new) >= NEW_FACTS else []


def _statements(part: ConversationSlice, stored: Sequence[Memory]) -> list[tuple[str, tuple[str, ...]]]:
    """Return what is stored from the messages, and what they say, each with the tags that a fact about it may
    have. A tag with the name of the person is left out: most of their facts have it."""
    names = {tag(word) for name in (part.user, part.speaker) for word in (name, *name.split())}
    texts = [(fact.content, fact.subjects) for fact in stored]
    for message in (*part.said, *(message for message in part.messages if message.role == "assistant")):
        texts += [(said, _words(said)) for said in sentences(message.text)]
    return [(text, tuple(word for word in given if word not in names)) for text, given in texts][:MAX_TEXTS]


def _words(text: str) -> tuple[str, ...]:
    return tags(re.findall(r"\w{3,}", text))[:MAX_WORDS]


def _answered(lines: Sequence[Line], now: datetime) -> Sequence[Line]:
    """Return the lines without trailing messages that wait for an answer: they are consolidated together with
    it. Where nothing else is in a full slice, they go without, since others follow."""
    answered = list(lines)
    while answered and answered[-1].message.role == "user":
        answered.pop()
    waiting = any(now - line.message.sent_at < ANSWERED_WITHIN for line in lines[len(answered) :])
    return answered if waiting and (answered or len(lines) < MAX_MESSAGES) else lines


def _mode(own: str | None, default: Mode) -> Mode:
    modes: dict[str | None, Mode] = {"companion": "companion", "study": "study", "work": "work"}
    return modes.get(own, default)
