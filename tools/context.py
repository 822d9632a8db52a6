"""What a tool knows of the turn it is called in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo

from memory.audience import Audience, Place
from memory.documents.library import DocumentLibrary
from memory.facts.candidate import Provenance
from memory.facts.writer import FactWriter
from memory.people.tasks import Tasks
from memory.records import Decision, Hit
from memory.search.recall import Recall
from tools.found import Reader


@dataclass(slots=True)
class TurnContext:
    """One for each turn. What happens in the turn is gathered in the lists."""

    user: str | None
    place: Place
    text: str
    message_id: str | None
    shown: frozenset[str]
    """Ids of the messages, facts and passages in the prompt. No tool returns them again."""
    clock: Callable[[], datetime]
    recall: Recall
    writer: FactWriter
    tasks: Tasks
    knowledge: DocumentLibrary
    knowledge_characters: int = 4_000
    """How much of the documents one look-up brings."""
    rendered: frozenset[str] = frozenset()
    """The sentences of the prompt that are ours, see `prompts.echo`. No memory is one of them."""
    zone: tzinfo = UTC
    """The person's time zone, where they told it."""
    searches: list[Sequence[Hit]] = field(default_factory=list)
    """What each search in memory brought, in order."""
    lists: list[Sequence[Hit]] = field(default_factory=list)
    """What each list of the newest brought."""
    decisions: list[Decision] = field(default_factory=list)
    asked_again: set[tuple[str, str]] = field(default_factory=set)
    """The facts, by id, that a model wanted to replace by these texts, and was shown."""

    @property
    def audience(self) -> Audience:
        """What the tools may read. In private: what is the person's own or everybody's. In a place: what
        belongs to the place, to one around it, or to everybody. For an anonymous person: nothing."""
        return Audience.of(self.user, self.place)

    @property
    def reader(self) -> Reader:
        return Reader(
            self.recall, self.audience, self.zone, self.shown, self.message_id, self.searches, self.lists
        )

    @property
    def found(self) -> list[Hit]:
        """What all searches and lists brought, with the lines around a found message."""
        return self.reader.found

    @property
    def hits(self) -> tuple[Hit, ...]:
        """What the searches were for, each once; in a turn without a search, what the lists of the newest
        brought."""
        hits = (hit for hits in self.searches or self.lists for hit in hits if hit.score)
        return tuple({hit.id: hit for hit in hits}.values())

    def origin(self) -> Provenance:
        """Where a memory that a tool stores now comes from. The person must be known."""
        assert self.user is not None, "an anonymous turn writes no memory"
        return Provenance(
            user=self.user,
            place=self.place,
            said_at=self.clock(),
            message_id=self.message_id,
            live=True,
            stated_now=True,
            said=self.text,
            found=tuple(self.found),
            shown=self.shown,
            confirmed=frozenset(id for id, _ in self.asked_again),
        )
