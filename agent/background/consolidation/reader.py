"""Read the input of one consolidation: the oldest messages that the conversation's summary does not cover,
and what is known of their authors."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, func, select

from agent.background.consolidation.input import MOST_FACTS, ConsolidationInput, Person, without_middle
from agent.models.choice.choose import ChosenModel
from agent.turn.context.budget import newest_that_fit
from agent.turn.context.user_snippet import fitting
from agent.types.budget import Budget
from memory.audience import Audience, Place, user_key
from memory.facts.candidate import Provenance
from memory.facts.compare import tells
from memory.facts.derived import MEMORY_SUMMARY, ended_facts, remaining_messages
from memory.people.profile import UserContext
from memory.people.profile_entries import context_of
from memory.records import Memory, Message
from memory.search.core_facts import core_facts, get_relevant_memories
from memory.sql.jobs.job import Job
from memory.sql.memories.memory_rows import UNEXPIRED, WITH_OWNERS, with_owners
from memory.sql.messages.message_rows import Line
from memory.sql.messages.reply_sources import recounting
from memory.sql.tables import memories, messages
from memory.text import sentences, tag, tags
from memory.text.names import named

if TYPE_CHECKING:
    from agent.wiring.components import Components

MOST_MESSAGES = 24
"""The most messages in one call …"""
MESSAGES = Budget(24_000)
"""… and their total length, each with its middle cut."""
MOST_PEOPLE = 4
"""The most people whose messages are read in one call."""
ANSWERED_WITHIN = timedelta(minutes=10)
"""How long a message may wait for its reply; then it is consolidated without one."""
SUMMARY_REREAD = 50
"""How many of the newest covered messages are read again to rewrite a withheld summary."""
MOST_BEHIND = 100
"""The most messages without a summary that are read. Older ones are skipped, so that an imported transcript
is not summarised whole; they stay in the transcript, and searches return them."""
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


@dataclass(frozen=True)
class ConsolidationReader:
    parts: "Components"
    answered_within: timedelta = ANSWERED_WITHIN
    most_behind: int = MOST_BEHIND
    """If more messages are pending, only the newest are read."""

    async def next(self, job: Job, limit: int, model: ChosenModel | None) -> ConsolidationInput | None:
        """Return the next input of a job's conversation, with at most `limit` messages, and for a `model`
        with what is known. Messages that the job wants read again come first, if the summary covers them.
        None if there is nothing to do: the summary covers every message that is not being answered, no
        summary is withheld, and no summary of facts is due."""
        conversation, place = job.payload["conversation"], Place(tuple(job.payload["place"]))
        owner, now = user_key(job.user_id) if place.private else place.key, self.parts.clock()
        most = max(self.most_behind, MOST_MESSAGES)
        active = await self.parts.summaries.of(conversation, owner, now)
        new = await self.parts.transcript.following(conversation, owner, None, MOST_MESSAGES, most=most)
        after = active.covered if active else 0
        reread = await self.parts.transcript.lines(job.payload.get("again", ()), owner)
        ready = _fitting_a_call(_before_pending(new, now - self.answered_within))
        lines = _with_last_replies([*(line for line in reread if line.seq <= after), *ready], limit)
        lines = await self._without_places(lines, job.user_id) if place.private else lines
        earlier: Sequence[Message] = ()
        if active and active.withheld:
            async with self.parts.store.database.read() as connection:
                earlier = await remaining_messages(
                    connection, conversation, owner, active.covered, SUMMARY_REREAD
                )
        names = {line.user: line.message.author for line in lines if line.message.role == "user"}
        if place.private:
            names.setdefault(job.user_id, earlier[-1].author if earlier else job.user_id)
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
            mode=(active and active.mode) or self.parts.settings.mode,
            now=now,
            judged=self.parts.models.judges,
            narrow=bool(model and model.fit and model.fit.narrow),
        )
        if model:
            reading = await self._with_knowledge(reading, active.updated_at if active else None)
        return reading if lines or earlier or reading.to_summarise else None

    async def _without_places(self, lines: Sequence[Line], user: str) -> Sequence[Line]:
        """Replace private replies that repeat what others said in places, so that nothing derived rests on
        it."""
        replies = [line.message.id for line in lines if line.message.role == "assistant"]
        recounted = await recounting(self.parts.store.database, replies, user)
        return [
            replace(line, message=replace(line.message, text=FROM_PLACES))
            if line.message.id in recounted
            else line
            for line in lines
        ]

    async def _with_knowledge(
        self, reading: ConsolidationInput, since: datetime | None
    ) -> ConsolidationInput:
        """Add stored knowledge about the people. `since` is the time of the last summary."""
        now, place, profiles = reading.now, reading.place, self.parts.profiles
        spoken = [*reading.earlier, *(line.message for line in reading.lines)]
        text = " ".join(one.text for one in spoken)
        ended = await ended_facts(self.parts.store.database, [one.id for one in spoken], reading.owner, now)
        stored = await self._stored(reading)
        facts_by_user = {
            person.user: await core_facts(self.parts.store, person.user, Audience.of(person.user, place), now)
            for person in reading.people
        }
        near = await self._near(reading, stored, facts_by_user, since)
        listed = {fact.id for fact in (*stored, *near)}
        people, due = list[Person](), list[Memory]()
        for person in reading.people:
            user, facts = person.user, facts_by_user[person.user]
            entries = await profiles.readable(user, place, now)
            tasks = await self.parts.tasks.relevant(user, text, place, now=now)
            finished = await self.parts.tasks.finished(user, place, now - FINISHED_SINCE, FINISHED_TASKS)
            written = [entry.said_at for entry in entries if entry.field == MEMORY_SUMMARY]
            profile = [entry for entry in entries if entry.field != MEMORY_SUMMARY]
            relevant = [f for f in get_relevant_memories(facts, text, limit=MOST_FACTS) if f.id not in listed]
            context = context_of(profile, long_term_facts=relevant, open_tasks=tasks)
            due = self._to_summarise(context, facts, max(written, default=None))
            context = replace(context, open_tasks=(*tasks, *finished))
            people.append(replace(person, known=context, profile=tuple(profile)))
        reading = replace(
            reading,
            people=tuple(people),
            no_longer=ended,
            stored=tuple(stored),
            near=tuple(near),
            to_summarise=tuple(due) if len(people) == 1 else (),
        )
        if not place.private or not await self.parts.check_ins.wanted(people[0].user):
            return reading
        planned = await self.parts.check_ins.planned(people[0].user, reading.zone, now)
        return replace(reading, check_ins=tuple(planned))

    async def _stored(self, reading: ConsolidationInput) -> list[Memory]:
        """Return the stored facts that rest on these messages and are readable in the place."""
        anybody = reading.people[0].user if reading.people else ""  # all read the same in a place
        audience = Audience.of(anybody, reading.place)
        parameters = {"messages": [line.message.id for line in reading.lines], "now": reading.now}
        facts = with_owners(await self.parts.store.database.rows(_STORED_FROM, parameters))
        return [fact for fact in facts if audience.may_read(fact.owners)]

    async def _near(
        self,
        reading: ConsolidationInput,
        stored: Sequence[Memory],
        facts_by_user: Mapping[str, Sequence[Memory]],
        since: datetime | None,
    ) -> list[Memory]:
        """Return other facts that the messages may concern: what others changed, what was stated elsewhere
        `since` the last summary, and facts similar to those and to the messages, nearest first."""
        if not self.parts.models.judges or not reading.from_people:
            return []
        elsewhere = [
            fact
            for facts in facts_by_user.values()
            for fact in facts
            if fact.place != str(reading.place) and (since is None or fact.created_at > since)
        ][:MAX_ELSEWHERE]
        changed, similar = list[Memory](), list[Memory]()
        for person in reading.people:
            changed += await self._changed_by_others(reading, person, facts_by_user[person.user])
            origin = Provenance(person.user, reading.now, reading.place)
            if texts := _texts_to_compare(reading, person, [*elsewhere, *stored]):
                similar += await self.parts.similar.around(texts, origin, MAX_NEAR + len(stored))
        stored_ids = {fact.id for fact in stored}
        distinct = {fact.id: fact for fact in (*changed, *elsewhere, *similar) if fact.id not in stored_ids}
        return [*distinct.values()][:MAX_NEAR]

    async def _changed_by_others(
        self, reading: ConsolidationInput, person: Person, facts: Sequence[Memory]
    ) -> list[Memory]:
        """Return facts of others that may change what the person stated in this place: stated since the last
        consolidation, each after the person's older fact that depends on it."""
        if reading.place.private:
            return []
        parameters = {"conversation": reading.conversation, "user": person.user, "after": reading.after}
        [(since,)] = await self.parts.store.database.rows(_READ_UNTIL, parameters)
        audience = Audience.of(person.user, reading.place)
        recent = await self.parts.store.newest(audience, reading.now, MAX_CHANGED, since=since)
        names = await self.parts.transcript.speakers.names({fact.user_id for fact in recent}, audience)
        pairs = [
            (old, new)
            for new in recent
            for old in facts
            if old.user_id == person.user != new.user_id
            and old.created_at < new.created_at
            and named(old.content, teller := (new.user_id, names[new.user_id]))
            and tells(new.content, old.content, teller)
        ]
        return [fact for pair in pairs for fact in pair]

    def _to_summarise(
        self, context: UserContext, facts: Sequence[Memory], since: datetime | None
    ) -> list[Memory]:
        """Return the facts to summarise: if they exceed the budget without a summary, or if many are new."""
        whole = replace(context, long_term_facts=tuple(facts))
        if len(fitting(whole, self.parts.settings.context_budget, len(facts)).long_term_facts) == len(facts):
            return []
        selected = list(facts[:FACTS_TO_SUMMARISE])
        new = [fact for fact in selected if since is None or fact.created_at > since]
        return selected if since is None or len(new) >= NEW_FACTS else []


def _texts_to_compare(
    reading: ConsolidationInput, person: Person, stored: Sequence[Memory]
) -> list[tuple[str, tuple[str, ...]]]:
    """Return the texts for which similar facts are looked up: the person's stored facts, then the sentences
    of the messages, theirs first. Each has its possible tags, without the person's own name, which most of
    their facts have."""
    names = {tag(word) for name in (person.user, person.name) for word in (name, *name.split())}
    texts = [(fact.content, fact.subjects) for fact in stored if fact.user_id == person.user]
    for line in sorted(reading.lines, key=lambda one: (one.user != person.user, one.message.role != "user")):
        for sentence in sentences(line.message.text):
            texts.append((sentence, tags(re.findall(r"\w{3,}", sentence))[:MAX_WORDS]))
    return [(text, tuple(word for word in words if word not in names)) for text, words in texts][:MAX_TEXTS]


def _before_pending(lines: Sequence[Line], since: datetime) -> Sequence[Line]:
    """Return the messages before the first one that came after `since` and has no reply: its turn may still
    be running."""
    waits = dict[str, int]()
    for place, line in enumerate(lines):
        if line.message.role == "assistant":
            waits.pop(line.user, None)
        elif line.message.sent_at > since:
            waits.setdefault(line.user, place)
    return lines[: min(waits.values(), default=len(lines))]


def _fitting_a_call(lines: Sequence[Line]) -> list[Line]:
    """Return as many of the first messages as fit one call."""
    backwards = [(line, without_middle(line.message.text)) for line in reversed(lines)]
    fit = newest_that_fit(backwards, MESSAGES)[::-1]
    people = dict[str, None]()
    for place, line in enumerate(fit):
        people |= {line.user: None} if line.message.role == "user" else {}
        if len(people) > MOST_PEOPLE:
            return fit[:place]
    return fit


def _with_last_replies(lines: Sequence[Line], limit: int) -> Sequence[Line]:
    """Return the first `limit` messages, and the replies to the last of them."""
    replies = takewhile(lambda line: line.message.role == "assistant", lines[limit:])
    return [*lines[:limit], *replies]
