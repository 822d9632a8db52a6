"""A statement under decision: what was proposed, where it comes from, and who may hear what becomes of it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from memory.audience import PRIVATE, Audience, Place, owners_of
from memory.compare import content_key
from memory.records import Action, Decision, Draft, Hit, Memory, Source
from memory.ttl import read_ttl


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a statement comes from."""

    user: str
    said_at: datetime
    place: Place = PRIVATE
    source: Source = "conversation"
    message_id: str | None = None
    said: str = ""
    """The message itself, to tell what was said from what was only recalled."""
    recalled: tuple[Hit, ...] = ()
    """What this turn has recalled so far: repeating it is no news."""

    @property
    def owners(self) -> frozenset[str]:
        return owners_of(self.user, self.place)

    @property
    def audience(self) -> Audience:
        return Audience.of(self.user, self.place)


@dataclass(frozen=True, slots=True)
class Case:
    """One draft under decision."""

    draft: Draft
    origin: Origin
    vector: Any
    now: datetime
    changed: list[Memory] = field(default_factory=list)
    """As they are after the decision, for the index."""
    vectors: dict[str, Any] = field(default_factory=dict)
    overruled: set[str] = field(default_factory=set)
    """Ids of memories that a judge ruled this statement to replace."""

    @property
    def key(self) -> str:
        return content_key(self.draft.content)

    @property
    def expires_at(self) -> datetime | None:
        duration = read_ttl(self.draft.ttl).duration
        return None if duration is None else self.origin.said_at + duration

    def sees(self, memory: Memory) -> bool:
        """Whether the people present may read it, and so hear of it."""
        return self.origin.audience.may_read(memory.owners)

    def echo(self, memory: Memory) -> bool:
        return any(hit.id == memory.id for hit in self.origin.recalled) and not self._said()

    def echoed(self) -> str | None:
        """The recalled text that the draft repeats, unless the message says it itself."""
        if self._said():
            return None
        texts = (hit.content for hit in self.origin.recalled)
        return next((text for text in texts if content_key(text) == self.key), None)

    def _said(self) -> bool:
        return self.draft.content.casefold() in self.origin.said.casefold()

    def memory(self, owners: set[str]) -> Memory:
        draft, origin = self.draft, self.origin
        return Memory(
            id=str(uuid4()),
            content=draft.content,
            subjects=draft.subjects,
            created_at=origin.said_at,
            expires_at=self.expires_at,
            source=origin.source,
            type=draft.type,
            importance=draft.importance,
            last_accessed_at=None,
            uses=0,
            user_id=origin.user,
            place=str(origin.place),
            message_id=origin.message_id,
            owners=frozenset(owners),
        )

    def decision(
        self,
        action: Action,
        memory: Memory | None,
        reason: str,
        *,
        target: Memory | None = None,
        close: tuple[Memory, ...] = (),
    ) -> Decision:
        """Names only what the people present may read."""
        if memory is not None and memory.owners and not self.sees(memory):
            memory = None
        return Decision(
            content=self.draft.content,
            action=action,
            id=memory.id if memory else None,
            reason=reason,
            target_id=target.id if target and self.sees(target) else None,
            expires_at=memory.expires_at if memory else None,
            close=close,
        )
