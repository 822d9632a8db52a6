"""The input of one consolidation: messages that no summary covers, and what is known of their authors."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo

from memory.audience import Place
from memory.facts.compare import mentions
from memory.people.check_ins import CheckIn
from memory.people.profile import UserContext
from memory.people.profile_entries import Entry, messages_of
from memory.process.spans import Traced
from memory.records import Memory, Message
from memory.sql.messages.message_rows import Line

MOST_FACTS = 20
"""The most facts of a person that the model is shown, besides those that the messages concern."""
MAX_MESSAGE = 4_000
"""The most characters of a message."""


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
    mode: str
    """The focus of the summary: companion, study or work."""
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
        lines = self.cited(cited) or self.from_people
        return lines if len({line.user for line in lines}) == 1 else ()

    def cited(self, numbers: Iterable[int]) -> tuple[Line, ...]:
        """Return the messages with these numbers, in order."""
        lines = self.from_people
        return tuple(lines[number - 1] for number in sorted(set(numbers)) if 1 <= number <= len(lines))


def without_middle(text: str) -> str:
    """Cut the middle of a long text: people comment on pasted text before or after it."""
    if len(text) <= MAX_MESSAGE:
        return text
    half = MAX_MESSAGE // 2
    return f"{text[:half]} … {text[-half:]}"
