"""Read the input of one consolidation: the oldest messages that the conversation's summary does not cover,
and what is known of their authors."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Literal

from sqlalchemy import bindparam, func, select

from agent.background.consolidation_messages import (
    ANSWERED_WITHIN,
    MOST_MESSAGES,
    before_pending,
    fitting_a_call,
    with_last_replies,
)
from agent.turn.context.user_snippet import fitting
from memory.audience import Audience, Place
from memory.facts.candidate import Provenance
from memory.facts.compare import mentions, tells
from memory.facts.derived import MEMORY_SUMMARY, ended_facts, remaining_messages
from memory.people.check_ins import CheckIn
from memory.people.profile import UserContext
from memory.people.profile_entries import Entry, context_of, messages_of
from memory.process.traced import Traced
from memory.records import Memory, Message
from memory.search.core_facts import core_facts, get_relevant_memories
from memory.sql.memories.memory_rows import UNEXPIRED, WITH_OWNERS, with_owners
from memory.sql.messages.message_rows import Line
from memory.sql.messages.reply_sources import recounting
from memory.sql.tables import memories, messages
from memory.text import sentences, tag, tags
from memory.text.names import named

if TYPE_CHECKING:
    from agent.wiring.components import Components

Mode = Literal["companion", "study", "work"]

SUMMARY_REREAD = 50
"""How many of the newest covered messages are read again to rewrite a withheld summary."""
MOST_BEHIND = 100
"""The most messages without a summary that are read. Older ones are skipped, so that an imported transcript
is not summarised whole; they stay in the transcript, and searches return them."""
KNOWN_FACTS = 20
MAX_NEAR = 16
"""The most similar stored facts, besides those in the user context."""
FROM_PLACES = "(what others said elsewhere)"
"""Replaces a private reply that repeats what the person read in a place."""
MAX_ELSEWHERE = 4
"""The most recent facts from elsewhere."""
MAX_CHANGED = 20
"""The most recent facts in a place that are checked for changes by others."""
MAX_TEXTS = 16
"""The most sentences for which similar facts are looked up."""
MAX_WORDS = 40
"""The most words of a sentence that are tried as tags."""
FINISHED_TASKS, FINISHED_SINCE = 5, timedelta(days=7)
"""The most finished tasks, and their age, that the model sees so that it does not open them again."""
NEW_FACTS = 20
"""The number of new facts after which the summary of the facts is rewritten."""
FACTS_TO_SUMMARISE = 40

_READ_UNTIL = select(func.max(messages.c.sent_at)).where(
    messages.c.conversation_id == bindparam("conversation"),
    messages.c.user_id == bindparam("user"),
    messages.c.role == "user",
    messages.c.seq <= bindparam("after"),
)
_STORED_FROM = WITH_OWNERS.where(memories.c.message_id.in_(bindparam("messages", expanding=True)), UNEXPIRED)


@dataclass(frozen=True, slots=True)
class Person:
    """The author of messages, with what is known of them in that place."""

    user: str
    name: str
    """Their most recent name."""
    known: UserContext = field(default_factory=UserContext)
    profile: tuple[Entry, ...] = ()
    """The entries from which the profile in `known` is built."""


@dataclass(frozen=True, slots=True)
class ConsolidationInput(Traced):
    """Messages that no summary covers, oldest first, and what is known if a model consolidates."""

    conversation: str
    owner: str
    """``place:P``, or ``user:U`` in private."""
    place: Place
    lines: tuple[Line, ...]
    people: tuple[Person, ...]
    """The authors of the messages; in private, always the person."""
    summary: str
    """The conversation's summary before these messages; empty if it was withheld."""
    earlier: tuple[Message, ...]
    """Messages of people before these, to rewrite a withheld summary."""
    after: int
    """The `seq` of the last message that the summary covers."""
    revision: int
    """The revision of that summary …"""
    summary_id: str | None
    """… and its id, which changes when something in it is forgotten."""
    mode: Mode
    now: datetime
    judged: bool = False
    """Whether the model rules on facts."""
    narrow: bool = False
    """Whether the model's window fits only the short prompt."""
    no_longer: tuple[str, ...] = ()
    """Facts from the messages and from `earlier` ones that are no longer active."""
    stored: tuple[Memory, ...] = ()
    """Facts that are already stored from these messages."""
    near: tuple[Memory, ...] = ()
    """Stored facts that these messages, or the facts in `stored`, may concern."""
    to_summarise: tuple[Memory, ...] = ()
    """The facts of the only author, if a summary of them is due."""
    check_ins: tuple[CheckIn, ...] | None = None
    """Planned check-ins with the person; None if they want none."""

    @property
    def upto(self) -> int:
        """The `seq` of the last message."""
        return max(self.lines[-1].seq, self.after) if self.lines else self.after

    @property
    def from_people(self) -> tuple[Line, ...]:
        """The messages of people, which the model cites by their numbers, from 1."""
        return tuple(line for line in self.lines if line.message.role == "user")

    @property
    def zone(self) -> tzinfo:
        """The zone in which times are shown: that of the first author."""
        return self.people[0].known.zone if self.people else UTC

    @property
    def message_ids(self) -> frozenset[str]:
        """The ids of all messages that the model is shown."""
        return frozenset(message.id for message in (*(line.message for line in self.lines), *self.earlier))

    @property
    def facts(self) -> tuple[Memory, ...]:
        """All facts that the model is shown."""
        known = [fact for person in self.people for fact in person.known.long_term_facts]
        return (*self.stored, *self.near, *known, *self.to_summarise)

    @property
    def profile_messages(self) -> frozenset[str]:
        """The ids of the messages that the profiles rest on."""
        return messages_of(entry for person in self.people for entry in person.profile)

    def mentioned_sources(self, text: str) -> frozenset[str]:
        """Return the ids of facts that share a word with a text, and of messages behind profile entries that
        do; names do not count."""
        names = {name for person in self.people for name in (person.user, person.name)}
        facts = {fact.id for fact in self.facts if mentions(text, fact.content, names)}
        entries = [entry for person in self.people for entry in person.profile]
        return messages_of(entry for entry in entries if mentions(text, entry.value, names)) | facts

    @property
    def rulable(self) -> bool:
        """Whether the model sees two facts, so that one may supersede the other."""
        return self.judged and not self.narrow and len({fact.id for fact in self.facts}) > 1

    def sources(self, cited: Iterable[int]) -> tuple[Line, ...]:
        """Return the messages that an item of the answer rests on, all by one author. An item without
        citations rests on all messages of the only author, so that forgetting one of them forgets it. Empty
        if several people wrote, since the author is unknown."""
        found = self.cited(cited) or self.from_people
        return found if len({line.user for line in found}) == 1 else ()

    def cited(self, numbers: Iterable[int]) -> tuple[Line, ...]:
        """Return the messages with these numbers, in order."""
        said = self.from_people
        return tuple(said[number - 1] for number in sorted(set(numbers)) if 1 <= number <= len(said))


@dataclass(frozen=True)
class ConsolidationReader:
    parts: "Components"
    with_model: bool
    answered_within: timedelta = ANSWERED_WITHIN
    most_behind: int = MOST_BEHIND
    """If more messages are pending, only the newest are read."""

    async def next(
        self,
        conversation: str,
        owner: str,
        place: Place,
        limit: int = MOST_MESSAGES,
        again: Collection[str] = (),
    ) -> ConsolidationInput | None:
        """Return the next input, with at most `limit` messages. Messages to be read `again` come first, if
        the summary covers them. None if there is nothing to do: the summary covers every message that is not
        being answered, no summary is withheld, and no summary of facts is due."""
        now = self.parts.clock()
        most = max(self.most_behind, MOST_MESSAGES)
        active = await self.parts.summaries.of(conversation, owner, now)
        new = await self.parts.transcript.following(conversation, owner, None, MOST_MESSAGES, most=most)
        after = active.covered if active else 0
        covered = [line for line in await self.parts.transcript.lines(again, owner) if line.seq <= after]
        ready = fitting_a_call(before_pending(new, now - self.answered_within))
        lines = with_last_replies([*covered, *ready], limit)
        lines = await self._without_places(lines, owner) if place.private else lines
        earlier: Sequence[Message] = ()
        if active and active.withheld:
            async with self.parts.store.database.read() as connection:
                earlier = await remaining_messages(
                    connection, conversation, owner, active.covered, SUMMARY_REREAD
                )
        names = {line.user: line.message.author for line in lines if line.message.role == "user"}
        if place.private:
            user = owner.removeprefix("user:")
            names.setdefault(user, earlier[-1].author if earlier else user)
        reading = ConsolidationInput(
            conversation=conversation,
            owner=owner,
            place=place,
            lines=tuple(lines),
            people=tuple(Person(user, name) for user, name in names.items()),
            summary=active.summary if active else "",
            earlier=tuple(earlier),
            after=after,
            revision=active.revision if active else 0,
            summary_id=active.id if active else None,
            mode=_mode(active.mode if active else None, self.parts.settings.mode),
            now=now,
            judged=self.parts.models.judges,
        )
        if self.with_model:
            reading = await self._with_what_is_known(reading, active.updated_at if active else None)
        return reading if lines or earlier or reading.to_summarise else None

    async def _without_places(self, lines: Sequence[Line], owner: str) -> Sequence[Line]:
        """Replace private replies that repeat what others said in places, so that nothing derived rests on
        it."""
        replies = [line.message.id for line in lines if line.message.role == "assistant"]
        told = await recounting(self.parts.store.database, replies, owner.removeprefix("user:"))
        return [
            replace(line, message=replace(line.message, text=FROM_PLACES))
            if line.message.id in told
            else line
            for line in lines
        ]

    async def _with_what_is_known(
        self, reading: ConsolidationInput, since: datetime | None
    ) -> ConsolidationInput:
        """Add stored knowledge about the people. `since` is the time of the last summary."""
        now = reading.now
        said = [*reading.earlier, *(line.message for line in reading.lines)]
        text = " ".join(one.text for one in said)
        over = await ended_facts(self.parts.store.database, [one.id for one in said], reading.owner, now)
        stored = await self._stored(reading)
        known_of = {
            person.user: await core_facts(
                self.parts.store, person.user, Audience.of(person.user, reading.place), now
            )
            for person in reading.people
        }
        elsewhere = [
            fact
            for facts in known_of.values()
            for fact in facts
            if fact.place != str(reading.place) and (since is None or fact.created_at > since)
        ][:MAX_ELSEWHERE]
        near = await self._near(reading, stored, elsewhere)
        for person in reading.people:
            near = [*await self._changed_by_others(reading, person, known_of[person.user]), *near]
        already = {fact.id for fact in stored}
        near = [*{fact.id: fact for fact in near if fact.id not in already}.values()][:MAX_NEAR]
        shown = {fact.id for fact in (*stored, *near)}
        people, due = list[Person](), list[Memory]()
        for person in reading.people:
            user, place, facts = person.user, reading.place, known_of[person.user]
            entries = await self.parts.profiles.readable(user, place, now)
            tasks = await self.parts.tasks.relevant(user, text, place, now=now)
            finished = await self.parts.tasks.finished(user, place, now - FINISHED_SINCE, FINISHED_TASKS)
            written = [entry.said_at for entry in entries if entry.field == MEMORY_SUMMARY]
            profile = [entry for entry in entries if entry.field != MEMORY_SUMMARY]
            relevant = [f for f in get_relevant_memories(facts, text, limit=KNOWN_FACTS) if f.id not in shown]
            known = context_of(profile, long_term_facts=relevant, open_tasks=tasks)
            due = self._to_summarise(known, facts, max(written, default=None))
            known = replace(known, open_tasks=(*tasks, *finished))
            if place.private and await self.parts.check_ins.wanted(user):
                planned = await self.parts.check_ins.planned(user, known.zone, now)
                reading = replace(reading, check_ins=tuple(planned))
            people.append(replace(person, known=known, profile=tuple(profile)))
        return replace(
            reading,
            people=tuple(people),
            no_longer=over,
            stored=tuple(stored),
            near=tuple(near),
            to_summarise=tuple(due) if len(people) == 1 else (),
        )

    async def _stored(self, reading: ConsolidationInput) -> list[Memory]:
        """Return the stored facts that rest on these messages and are readable in the place."""
        anybody = reading.people[0].user if reading.people else ""  # all read the same in a place
        audience = Audience.of(anybody, reading.place)
        given = {"messages": [line.message.id for line in reading.lines], "now": reading.now}
        found = with_owners(await self.parts.store.database.rows(_STORED_FROM, given))
        return [fact for fact in found if audience.may_read(fact.owners)]

    async def _near(
        self, reading: ConsolidationInput, stored: Sequence[Memory], elsewhere: Sequence[Memory]
    ) -> list[Memory]:
        """Return stored facts that the messages may concern, nearest first. Includes facts stated `elsewhere`
        since the last summary, and facts similar to them."""
        if not self.parts.models.judges or not reading.from_people:
            return []
        found = {fact.id: fact for fact in elsewhere}
        for person in reading.people:
            origin = Provenance(person.user, reading.now, reading.place)
            texts = _texts_to_compare(reading, person, [*elsewhere, *stored])
            most = MAX_NEAR + len(stored)
            for fact in await self.parts.similar.around(texts, origin, most) if texts else ():
                found.setdefault(fact.id, fact)
        return [*found.values()]

    async def _changed_by_others(
        self, reading: ConsolidationInput, person: Person, facts: Sequence[Memory]
    ) -> list[Memory]:
        """Return facts of others that may change what the person stated in this place: stated since the last
        consolidation, each after the person's older fact that depends on it."""
        if reading.place.private or not self.parts.models.judges:
            return []
        given = {"conversation": reading.conversation, "user": person.user, "after": reading.after}
        [(since,)] = await self.parts.store.database.rows(_READ_UNTIL, given)
        audience = Audience.of(person.user, reading.place)
        told = await self.parts.store.newest(audience, reading.now, MAX_CHANGED, since=since)
        names = await self.parts.transcript.speakers.names({fact.user_id for fact in told}, audience)
        pairs = [
            (old, new)
            for new in told
            for old in facts
            if old.user_id == person.user != new.user_id
            and old.created_at < new.created_at
            and named(old.content, teller := (new.user_id, names[new.user_id]))
            and tells(new.content, old.content, teller)
        ]
        return [fact for pair in pairs for fact in pair]

    def _to_summarise(
        self, known: UserContext, facts: Sequence[Memory], since: datetime | None
    ) -> list[Memory]:
        """Return the facts to summarise: if they exceed the budget without a summary, or if many are new."""
        whole = replace(known, long_term_facts=tuple(facts))
        if len(fitting(whole, self.parts.settings.context_budget, len(facts)).long_term_facts) == len(facts):
            return []
        told = list(facts[:FACTS_TO_SUMMARISE])
        new = [fact for fact in told if since is None or fact.created_at > since]
        return told if since is None or len(new) >= NEW_FACTS else []


def _texts_to_compare(
    reading: ConsolidationInput, person: Person, stored: Sequence[Memory]
) -> list[tuple[str, tuple[str, ...]]]:
    """Return the texts for which similar facts are looked up: the person's stored facts, then the sentences
    of the messages, theirs first. Each has its possible tags, without the person's own name, which most of
    their facts have."""
    names = {tag(word) for name in (person.user, person.name) for word in (name, *name.split())}
    texts = [(fact.content, fact.subjects) for fact in stored if fact.user_id == person.user]
    for line in sorted(reading.lines, key=lambda one: (one.user != person.user, one.message.role != "user")):
        texts += [(said, _words(said)) for said in sentences(line.message.text)]
    return [(text, tuple(word for word in given if word not in names)) for text, given in texts][:MAX_TEXTS]


def _words(text: str) -> tuple[str, ...]:
    return tags(re.findall(r"\w{3,}", text))[:MAX_WORDS]


def _mode(own: str | None, default: Mode) -> Mode:
    modes: dict[str | None, Mode] = {"companion": "companion", "study": "study", "work": "work"}
    return modes.get(own, default)
