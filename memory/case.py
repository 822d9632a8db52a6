"""A statement under decision: what was proposed, where it comes from, and who may hear what becomes of it."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memory.audience import GLOBAL, PRIVATE, Audience, Place, owners_of
from memory.compare import content_key, normalise
from memory.records import Action, Decision, Draft, Hit, Memory, Source
from memory.spans import new_id
from memory.ttl import read_ttl

_WORD = re.compile(r"\w{3,}")


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

    live: bool = False
    """Said just now: nothing is kept where its message is gone, since who said it was erased meanwhile."""
    everybody: bool = False
    """Told by the operator, for everybody: it belongs to nobody in particular."""

    @property
    def owners(self) -> frozenset[str]:
        return frozenset({GLOBAL}) if self.everybody else owners_of(self.user, self.place)

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
    changed: dict[str, Memory] = field(default_factory=dict)
    """By id, as they are after the decision, for the index."""
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

    def corrects(self, memory: Memory) -> bool:
        """Whether it was given as the one to be replaced, by people who may read it, and is to change."""
        if memory.id != self.draft.replaces or not self.sees(memory):
            return False
        draft = self.draft
        said = (self.key, draft.importance, draft.type, set(draft.subjects), self.expires_at)
        known = (content_key(memory.content), memory.importance, memory.type, set(memory.subjects))
        return said != (*known, memory.expires_at)

    @property
    def said(self) -> bool:
        """Whether the message itself says it: verbatim, or, where it asks nothing, with every word of it that
        is no small one and no name of those it is about."""
        message, content = normalise(self.origin.said), normalise(self.draft.content)
        if content in message:
            return True
        about = " ".join([self.origin.user, *self.draft.subjects]).casefold()
        telling = set(_WORD.findall(content)) - set(_WORD.findall(about))
        return bool(telling) and "?" not in message and telling <= set(_WORD.findall(message))

    def memory(self, owners: frozenset[str]) -> Memory:
        draft, origin = self.draft, self.origin
        return Memory(
            id=new_id(),
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
            owners=owners,
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
