"""The turn in which a tool is called, as the tool sees it."""

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
from tools.lookup import Reader
from tools.proposed_call import Confirm


@dataclass(slots=True)
class TurnContext:
    """The context of one turn. Its lists collect the results of the tools."""

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
    """Characters of documents that one search may return."""
    rendered: frozenset[str] = frozenset()
    """Sentences of the prompt itself (see `prompts.echo`), which never become memories."""
    zone: tzinfo = UTC
    """The person's time zone; UTC until they name one."""
    readable: Audience | None = None
    """What searches in memory may read, if that is more than `audience`."""
    searches: list[Sequence[Hit]] = field(default_factory=list)
    """The hits of each search, in order."""
    lists: list[Sequence[Hit]] = field(default_factory=list)
    """The hits of each list of the newest."""
    decisions: list[Decision] = field(default_factory=list)
    unasked: bool = False
    """Whether the turn began without a message. Then tools only read, and the model may stay silent."""
    confirm: Confirm | None = None
    """Asks the person about a call that changes something. None: no such tool is offered."""
    asked_again: set[tuple[str, str]] = field(default_factory=set)
    """(id, new text) of each replacement that was already questioned."""

    @property
    def audience(self) -> Audience:
        """Return who reads. In private: what belongs to the person and to everybody. In a place: what belongs
        to the place, to those around it and to everybody. An anonymous person reads nothing."""
        return Audience.of(self.user, self.place)

    @property
    def reader(self) -> Reader:
        """Return who searches, with what they have read in this turn."""
        readable = self.readable or self.audience
        return Reader(
            self.recall, readable, self.zone, self.shown, self.message_id, self.searches, self.lists
        )

    @property
    def all_hits(self) -> list[Hit]:
        """Return the hits of all searches and lists, with the messages around them (score 0)."""
        return self.reader.all_hits

    @property
    def hits(self) -> tuple[Hit, ...]:
        """Return each hit once, without messages around it. Lists count only if the turn has no search."""
        hits = (hit for hits in self.searches or self.lists for hit in hits if hit.score)
        return tuple({hit.id: hit for hit in hits}.values())

    def origin(self) -> Provenance:
        """Return the provenance of a memory that a tool stores now. The turn must have a user."""
        assert self.user is not None, "an anonymous turn writes no memory"
        return Provenance(
            user=self.user,
            place=self.place,
            said_at=self.clock(),
            message_id=self.message_id,
            live=True,
            stated_now=True,
            said=self.text,
            found=tuple(self.all_hits),
            shown=self.shown,
            confirmed=frozenset(id for id, _ in self.asked_again),
        )
