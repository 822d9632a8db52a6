"""A fact before the decision on it: its text, its provenance, and which memories its audience may read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from memory.audience import GLOBAL, PRIVATE, Audience, Place, owners_of, user_key
from memory.facts.compare import Verdict, content_key
from memory.process.spans import new_id
from memory.records import Action, Decision, Hit, Memory, NewMemory, Source
from memory.sql.memories.store import CORRECTED, CORRECTED_BY_MODEL, FOR_A_TIME, tellers
from memory.text.ttl import read_ttl


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who stated a fact, when, where and in which message."""

    user: str
    said_at: datetime
    place: Place = PRIVATE
    source: Source = "conversation"
    message_id: str | None = None
    said: str = ""
    """The text of the message, which shows whether the fact was stated or only found by a search."""
    found: tuple[Hit, ...] = ()
    """The hits of the searches of the turn so far."""
    shown: frozenset[str] = frozenset()
    """The ids of the rows in the prompt."""
    live: bool = False
    """True if a model made the fact from a message of a turn. If that was erased, the fact is not stored."""
    stated_now: bool = False
    """True for a fact that a caller states now, which is newer than every stored one."""
    confirmed: frozenset[str] = frozenset()
    """The ids of facts whose replacement a model has confirmed after reading both texts."""
    everybody: bool = False
    """True if the operator states the fact for everybody; no person or place owns it."""

    @property
    def owners(self) -> frozenset[str]:
        return frozenset({GLOBAL}) if self.everybody else owners_of(self.user, self.place)

    @property
    def audience(self) -> Audience:
        return Audience.of(self.user, self.place)


@dataclass(frozen=True, slots=True)
class CandidateFact:
    proposed: NewMemory
    origin: Provenance
    vector: Any
    """The embedding; None if the embedder is unavailable."""
    now: datetime
    made: set[str] = field(default_factory=set)
    """The ids of memories that were stored from the same message or call."""
    rulings: dict[str, Verdict] = field(default_factory=dict)
    """The model's rulings on how the fact relates to memories, by memory id."""

    @property
    def key(self) -> str:
        return content_key(self.proposed.content)

    @property
    def expires_at(self) -> datetime | None:
        duration = read_ttl(self.proposed.ttl).duration
        return None if duration is None else self.origin.said_at + duration

    def sees(self, memory: Memory) -> bool:
        """Return whether the fact's audience may read the memory."""
        return self.origin.audience.may_read(memory.owners)

    def newer_than(self, memory: Memory) -> bool:
        """Return whether the fact is newer than the memory. That is also true if both come from the same
        message or call, and if the memory's time is equal or in the future (the clock was set back) and the
        fact comes from a new message."""
        origin = self.origin
        arrives = origin.live and origin.message_id is not None
        ahead = memory.created_at > self.now >= origin.said_at
        equal_or_ahead = origin.said_at == memory.created_at or ahead
        later = origin.stated_now or origin.said_at > memory.created_at or (arrives and equal_or_ahead)
        return later or self.restates(memory)

    def restates(self, memory: Memory) -> bool:
        """Return whether both come from the same call or message."""
        origin = self.origin
        same = origin.message_id is not None and origin.message_id == memory.message_id
        return memory.id in self.made or (same and origin.user == memory.user_id)

    def prolongs(self, memory: Memory) -> bool:
        """Return whether the fact extends the memory's expiry. A fact without a ttl removes the expiry if a
        caller states it, and leaves it unchanged if a model does."""
        until, stored_until = self.expires_at, memory.expires_at
        if stored_until is None or self.restates(memory):
            return False
        if self.origin.said_at < memory.created_at and not self.newer_than(memory):
            return False
        return not self.origin.live if until is None else until > stored_until

    def decides_for(self, memory: Memory) -> frozenset[str]:
        """Return the owners for whom the person may supersede or confirm the memory: all its owners, but only
        the person if somebody else stated it too."""
        if self.origin.everybody:
            return memory.owners
        user = user_key(self.origin.user)
        return memory.owners if tellers(memory.owners, memory.user_id) == {user} else memory.owners & {user}

    def corrects(self, memory: Memory) -> bool:
        """Return whether the fact names this memory in `replaces`, is newer, and differs from it, if only in
        case or punctuation. The audience must be able to read the memory."""
        if memory.id != self.proposed.replaces or not (self.sees(memory) and self.newer_than(memory)):
            return False
        new_memory = self.proposed
        proposed = (new_memory.content, new_memory.importance, new_memory.type, set(new_memory.subjects))
        stored = (memory.content, memory.importance, memory.type, set(memory.subjects))
        return proposed != stored or not _same_second(self.expires_at, memory.expires_at)

    def still_valid(self, verbatim: Mapping[str, Memory]) -> dict[str, Memory]:
        """Return the unexpired memories in the same words that the fact does not correct, by owner."""
        return {
            owner: memory
            for owner, memory in verbatim.items()
            if (memory.expires_at is None or memory.expires_at > self.now)
            and not (self.corrects(memory) and owner in self.decides_for(memory))
        }

    @property
    def correction(self) -> Verdict:
        """Return the verdict on the memory that the fact corrects."""
        ends = self.expires_at is not None and not self.proposed.for_good
        by = CORRECTED_BY_MODEL if self.origin.live else CORRECTED
        return Verdict("contradiction", FOR_A_TIME if ends else by)

    def memory(self, owners: frozenset[str]) -> Memory:
        """Return the memory to insert for these owners."""
        new_memory, origin = self.proposed, self.origin
        return Memory(
            id=new_id(),
            content=new_memory.content,
            subjects=new_memory.subjects,
            created_at=origin.said_at,
            expires_at=self.expires_at,
            source=origin.source,
            type=new_memory.type,
            importance=new_memory.importance,
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
        """Return the decision, without memories that the audience may not read."""
        if memory is not None and memory.owners and not self.sees(memory):
            memory = None
        return Decision(
            content=self.proposed.content,
            action=action,
            id=memory.id if memory else None,
            reason=reason,
            target_id=target.id if target and self.sees(target) else None,
            expires_at=memory.expires_at if memory else None,
            close=close,
        )


def _same_second(time: datetime | None, other: datetime | None) -> bool:
    """Return whether the times differ by less than a second, the precision of a ttl."""
    if time is None or other is None:
        return time is other
    return abs(time - other) < timedelta(seconds=1)
