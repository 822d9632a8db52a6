"""Looks up, adds, changes and deletes memories for the person they belong to."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from agent.errors import BadInput
from agent.services.arguments import (
    audience_of,
    checked,
    draft_of,
    moment_of,
    place_of,
    readable_name,
    subjects_of,
    switch,
    user_named,
)
from agent.services.erasure import ErasureService
from agent.turn.forget_requests import ForgetRequests
from memory.audience import PRIVATE, Place, user_key
from memory.erasure.expiry import Forgetting
from memory.erasure.statements import StatementForgetting
from memory.errors import MemoryFault, NotFound
from memory.facts.aliases import also_called, linked
from memory.facts.candidate import Provenance
from memory.facts.history import History
from memory.facts.ttl import describe
from memory.facts.writer import FactWriter
from memory.index.sync import IndexSync
from memory.records import (
    Decision,
    Draft,
    ForgetCandidate,
    Forgotten,
    Hit,
    Memory,
    MemoryUpdate,
)
from memory.search.recall import Recall
from memory.sql.memories import MemoryStore, tellers
from memory.sql.messages import Transcript
from memory.text.names import fold, named

Where = Place | str | None
"""A place, its written form, or None for a private conversation."""


@dataclass(frozen=True)
class MemoryService:
    store: MemoryStore
    recall: Recall
    writer: FactWriter
    forgetting: Forgetting
    statements: StatementForgetting
    transcript: Transcript
    forget_requests: ForgetRequests
    forget_outside: Callable[[str], Awaitable[int]]
    """Runs the job of a forgetting that removes the rest from traces."""
    bring_back_traces: Callable[[], Awaitable[None]]
    past: History
    sync: IndexSync
    erasure: ErasureService
    clock: Callable[[], datetime]

    async def search(
        self,
        query: str,
        *,
        user: str,
        place: Where = None,
        limit: int = 10,
        subjects: Sequence[str] = (),
        author: str = "",
    ) -> list[Hit]:
        tags, audience = checked("subjects", subjects_of, subjects), audience_of(user, place)
        return await self.recall.search(query, audience, limit=limit, subjects=tags, author=author)

    async def remember(
        self,
        draft: Draft,
        *,
        user: str,
        place: Where = None,
        said_at: datetime | None = None,
        everybody: bool = False,
        author: str | None = None,
    ) -> Decision:
        if said_at is not None:
            said_at = checked("said_at", moment_of, said_at)
        id = user_named(user)
        await self.erasure.finished(id)
        if author is not None:
            await self.transcript.note_name(id, readable_name(author, "author"), place_of(place))
        origin = Provenance(
            id,
            said_at or self.clock(),
            place_of(place),
            source="note",
            now=said_at is None,
            everybody=checked("everybody", switch, everybody),
        )
        [decision] = await self.writer.remember([draft], origin)
        return decision

    async def remember_many(
        self, drafts: Sequence[Draft], *, user: str, place: Where = None
    ) -> list[Decision]:
        id = user_named(user)
        await self.erasure.finished(id)
        origin = Provenance(id, self.clock(), place_of(place), source="note", now=True)
        decisions = await self.writer.remember_many([(draft, origin) for draft in drafts])
        await self.sync.try_to_catch_up()
        return decisions

    async def people_named(self, text: str, *, user: str, place: Where = None) -> list[str]:
        """The people whom the text names, of those who wrote where the user reads."""
        return sorted(named(text, await self.transcript.authors(audience_of(user, place))))

    async def name(self, person: str, other: str, *, user: str, place: Where = None) -> Decision:
        """Remember that a person has another name; a search for either finds what is known of both."""
        names = readable_name(person, "person"), readable_name(other, "other name")
        draft = Draft(also_called(*names), names)
        if linked(draft.content) is None:
            raise BadInput("give two names that differ, each of at most four words")
        return await self.remember(draft, user=user, place=place)

    async def names(self, *, user: str, place: Where = None) -> list[tuple[Memory, str, str]]:
        """The memories that give a person another name, newest first, with the two names."""
        known = await self.newest(user=user, place=place)
        return [(memory, *pair) for memory in known if (pair := linked(memory.content))]

    async def forget_name(self, person: str, other: str, *, user: str, place: Where = None) -> Forgotten:
        """Forget that a person has another name. Raises NotFound if it is not remembered."""
        wanted = {fold(person.strip()), fold(other.strip())}
        for memory, *pair in await self.names(user=user, place=place):
            if {*map(fold, pair)} == wanted:
                return await self.delete(memory.id, user=user, place=place)
        raise NotFound(f"{person!r} is not known as {other!r} here; `hachi people aliases` shows who is")

    async def newest(self, *, user: str, place: Where = None, limit: int | None = None) -> list[Memory]:
        return await self.store.newest(audience_of(user, place), self.clock(), limit)

    async def get(self, id: str, *, user: str, place: Where = None) -> Memory:
        return await self.store.get(id, audience_of(user, place), self.clock())

    async def update(
        self, id: str, content: str, *, user: str, place: Where = None, **changes: Any
    ) -> Decision:
        old = await self.get(id, user=user, place=place)
        left = old.expires_at and old.expires_at - self.clock()
        about: dict[str, Any] = {
            "subjects": old.subjects,
            "ttl": describe(left) if left else None,
            "type": old.type,
            "importance": old.importance,
        }
        if changes.get("ttl", "") is None:
            changes["ttl"] = "never"
        about |= {name: changes.pop(name) for name in about if name in changes}
        draft = draft_of(content=content, **about, replaces=old.id)
        changes.setdefault("place", _told_in(old, user_named(user), place_of(place)))
        return await self.remember(draft, user=user, **changes)

    async def delete(self, id: str, *, user: str, place: Where = None) -> Forgotten:
        """Forget the memory, with everything that shows it: see `memory.erasure.statements`."""
        memory = await self.get(id, user=user, place=place)
        gone = await self._forgotten(*await self.statements.forget(memory, user_named(user)))
        return await self._with_near(gone, user, place)

    async def delete_message(self, id: str, *, user: str) -> Forgotten:
        """Forget one of the user's messages, and the memories that rest on it alone."""
        message = await self.transcript.own(id, user_named(user))
        return await self._forgotten(*await self.statements.forget_message(message.id, user_named(user)))

    async def delete_sent(self, origin: str) -> Forgotten | None:
        """Forget the message with this id on a chat platform, whose author has deleted it there. Returns None
        if it is not stored, or forgotten."""
        sent = await self.transcript.sent_as(origin)
        return await self.delete_message(sent[0], user=sent[1]) if sent else None

    async def find_to_forget(
        self, words: str, *, user: str, place: Where = None
    ) -> tuple[ForgetCandidate, ...]:
        named = user_named(user)
        return await self.forget_requests.matching([words], named, audience_of(named, place))

    async def forget(
        self, candidates: Sequence[ForgetCandidate], *, user: str, place: Where = None
    ) -> list[Forgotten]:
        """Forget what the person confirmed, with the messages that asked for it. Skips what was forgotten in
        the meantime, or with another candidate."""
        named, receipts = user_named(user), []
        for candidate in candidates:
            asked_in = candidate.asked_in
            with suppress(NotFound):  # forgotten with another candidate
                asked_in = (await self.transcript.own(asked_in, named)).id
            with suppress(NotFound):
                if candidate.kind == "memory":
                    memory = await self.get(candidate.id, user=user, place=place)
                    gone = await self.statements.forget(memory, named, asked_in=asked_in)
                else:
                    message = await self.transcript.own(candidate.id, named)
                    gone = await self.statements.forget_message(message.id, named, asked_in=asked_in)
                receipts.append(await self._forgotten(*gone))
        return [await self._with_near(receipt, user, place) for receipt in receipts]

    async def undo_forget(self, id: str, *, user: str) -> Forgotten:
        back = await self.statements.undo(id, user_named(user))
        self.store.forget_aliases()
        self.sync.wake()
        with suppress(MemoryFault):  # the worker does it later
            await self.bring_back_traces()
        return back

    async def _forgotten(self, receipt: Forgotten, job: str) -> Forgotten:
        """Remove what was forgotten from the index and the traces, and complete the receipt."""
        self.store.forget_aliases()
        self.sync.wake()
        return replace(receipt, traces=await self.forget_outside(job))

    async def _with_near(self, receipt: Forgotten, user: str, place: Where) -> Forgotten:
        """The receipt with the memories that stay and are near what was taken, as far as they may be read in
        the place."""
        known = await self.newest(user=user, place=place) if receipt.memories else []
        return replace(receipt, near=await self.statements.near(receipt, known, user_named(user)))

    async def make_private(self, id: str, *, user: str, place: Where = None) -> Memory:
        memory = await self.get(id, user=user, place=place)
        job = await self.forgetting.make_private(memory, user_named(user))
        self.sync.wake()
        await self.forget_outside(job)
        return memory

    async def history(self, id: str, *, user: str, place: Where = None) -> list[MemoryUpdate]:
        return await self.past.of(id, audience_of(user, place))

    async def undo(self, id: str, *, user: str, place: Where = None) -> MemoryUpdate:
        update = await self.past.undo(id, audience_of(user, place), user_named(user), self.clock())
        self.sync.wake()
        return update


def _told_in(memory: Memory, user: str, asked_in: Place) -> Place:
    """Return the place in which a correction of the memory counts as said: where the user told it, if that
    place is still known and nobody else told it. A correction asked for in a place counts there or not at
    all."""
    alone = tellers(memory.owners, memory.user_id) == {user_key(user)}
    where = [Place.parse(memory.place)] if asked_in.private else asked_in.containing()
    found = next((place for place in where if alone and place.key in memory.owners), PRIVATE)
    if found.private and not asked_in.private:
        raise NotFound(f"memory {memory.id!r} is not {user}'s to change here: somebody else told it")
    return found
