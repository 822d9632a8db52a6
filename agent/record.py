"""What can be done with what is remembered without anything being said: look it up, change it, take it along,
take it away. `agent/companion.py` adds the talking."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from agent.archive import Archive
from agent.background.reminders import Reminders
from agent.errors import BadInput
from agent.services.arguments import (
    audience_of,
    owner_of_documents,
    paths_of,
    place_of,
    readable_name,
    tags_of,
    user_named,
)
from agent.types import Incoming, writable
from memory.audience import PRIVATE, Audience, Place, user_key
from memory.case import Origin
from memory.conversations.summaries import owner_of
from memory.documents import AddedDocument, IngestProgress, IngestResult, UnreadableDocument, document_name
from memory.erasure.cleanup import Leaving
from memory.erasure.person import Erasure
from memory.erasure.receipt import Erased
from memory.errors import NotFound
from memory.index.sync import Progress
from memory.people.profile import UserContext, entry_for
from memory.records import (
    DEFAULT_IMPORTANCE,
    Chunk,
    Decision,
    Document,
    Draft,
    Hit,
    Memory,
    MemoryType,
    MemoryUpdate,
    Role,
)
from memory.search.core_facts import foremost
from memory.sql.memories import tellers
from memory.ttl import describe

MODES = ("companion", "study", "work")


class Record(Archive):
    """Every method that reads takes a user, and a place where it is not private."""

    # Memories.

    async def search_memories(
        self,
        query: str,
        *,
        user: str,
        place: Place | str | None = None,
        limit: int = 10,
        subjects: Sequence[str] = (),
    ) -> list[Hit]:
        """Facts and past messages, best first."""
        return await self.recall.search(query, audience_of(user, place), limit=limit, subjects=subjects)

    async def remember(
        self,
        content: str,
        *,
        user: str,
        subjects: Sequence[str] = (),
        ttl: str | None = None,
        type: MemoryType = "fact",
        importance: float = DEFAULT_IMPORTANCE,
        replaces: str | None = None,
        place: Place | str | None = None,
        said_at: datetime | None = None,
        everybody: bool = False,
    ) -> Decision:
        """Remember one fact; `said_at` for what was said in the past. With `everybody` it is everybody's to
        know, whoever told it and wherever. Durable when it returns."""
        await self._once_erased(user_named(user))
        draft = Draft(content, tags_of(subjects), ttl, type, importance, replaces)
        origin = Origin(
            user_named(user), said_at or self.clock(), place_of(place), source="note", everybody=everybody
        )
        [decision] = await self.remembering.remember([draft], origin)
        return decision

    async def memories(
        self, *, user: str, place: Place | str | None = None, limit: int | None = None
    ) -> list[Memory]:
        """What is remembered, newest first."""
        return await self.store.newest(audience_of(user, place), self.clock(), limit)

    async def memory(self, id: str, *, user: str, place: Place | str | None = None) -> Memory:
        """One memory, by its id or the first eight characters of it. Raises NotFound."""
        return await self.store.get(id, audience_of(user, place), self.clock())

    async def update_memory(
        self, id: str, content: str, *, user: str, place: Place | str | None = None, **changes: Any
    ) -> Decision:
        """Say it differently: a new memory replaces the old one, which stays in the history. `changes` are
        those arguments of `remember` that are to differ from the old one's. In a place, only what the user
        alone told there; NotFound otherwise."""
        old = await self.memory(id, user=user, place=place)
        left = old.expires_at and old.expires_at - self.clock()
        kept: dict[str, Any] = {
            "subjects": old.subjects,
            "ttl": describe(left) if left else None,
            "type": old.type,
            "importance": old.importance,
            "place": _told_in(old, user_named(user), place_of(place)),
        }
        return await self.remember(content, user=user, replaces=old.id, **kept | changes)

    async def delete_memory(self, id: str, *, user: str, place: Place | str | None = None) -> Memory:
        """Take it away for good, with what it had replaced. Others who said the same keep theirs, and so
        does the place where they said it. In a place, only what may be read there; NotFound for what the
        user did not tell."""
        memory = await self.memory(id, user=user, place=place)
        await self.removal.delete(memory, user_named(user))
        return memory

    async def make_private(self, id: str, *, user: str, place: Place | str | None = None) -> Memory:
        """What the user told in a place is theirs alone from now on, and no place's. Raises NotFound where
        it is in no place, and where somebody else told it too."""
        memory = await self.memory(id, user=user, place=place)
        await self.removal.make_private(memory, user_named(user))
        await self.indexing.try_to_catch_up()
        return memory

    async def history(self, id: str, *, user: str, place: Place | str | None = None) -> list[MemoryUpdate]:
        """What replaced what, when and why, along the chain this memory stands in; oldest first. In a place,
        what happened for that place."""
        return await self.past.of(id, audience_of(user, place))

    async def undo(self, id: str, *, user: str, place: Place | str | None = None) -> MemoryUpdate:
        """Take back the last replacement this memory took part in: what was replaced holds again. In private
        for the user alone; in a place for the place and for them, where nobody else told what is to give
        way. Raises NotFound where there is nothing to take back, or it is not theirs."""
        audience = audience_of(user, place)
        update = await self.past.undo(id, audience, user_named(user), self.clock())
        await self.indexing.try_to_catch_up()
        return update

    async def import_messages(
        self,
        messages: "Sequence[dict[str, Any]]",
        *,
        user: str,
        place: Place | str | None = None,
        conversation: str | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Take over an existing transcript: mappings with `author`, `text`, `sent_at` (aware) and perhaps
        `id`, in order. Importing the same ids again changes nothing. Returns how many there were."""
        from agent.services.transcripts import take_over

        incoming = self._incoming("", user, place, conversation, None)
        await self._once_erased(incoming.user)
        taken = await take_over(self.database, self.transcript, messages, incoming)
        await self.indexing.catch_up(progress)
        return taken

    # Documents.

    async def add_knowledge(
        self,
        paths: Sequence[str | Path],
        *,
        user: str | None = None,
        place: Place | str | None = None,
        progress: Callable[[IngestProgress], None] | None = None,
    ) -> IngestResult:
        """Read files, and all documents in folders: everybody's, or the user's or the place's that is named.
        What is unchanged is skipped, and what cannot be read is told. Raises NotFound where a path is not
        there, before anything is read."""
        return await self.knowledge.add(paths_of(paths), owner_of_documents(user, place), progress)

    async def add_document(
        self,
        name: str,
        content: str | bytes,
        *,
        user: str | None = None,
        place: Place | str | None = None,
    ) -> AddedDocument:
        """Take one document as it is handed over: Markdown, text, HTML or PDF, by the ending of its `name`.
        It is kept under that name, and replaced when the name comes again. Whose it is, as above. Raises
        BadInput where it cannot be read."""
        owner = owner_of_documents(user, place)
        await self._once_erased(None if user is None else user_named(user))
        data = writable(content).encode() if isinstance(content, str) else content
        try:
            named = document_name(name)
        except ValueError as error:
            raise BadInput(str(error)) from error
        try:
            return await self.knowledge.add_document(named, data, owner)
        except UnreadableDocument as error:
            raise BadInput(f"{named}: {error}") from error

    async def knowledge_documents(self, *, user: str, place: Place | str | None = None) -> list[Document]:
        """What may be read there, by path."""
        return await self.knowledge.documents(audience_of(user, place))

    async def remove_knowledge(
        self, what: str, *, user: str | None = None, place: Place | str | None = None
    ) -> list[Document]:
        """Take away a file, all that was added from below a folder, or a document by its id: of everybody's,
        or of the user's or the place's own. Raises NotFound."""
        return await self.knowledge.remove(what, owner_of_documents(user, place))

    async def search_knowledge(
        self, query: str, *, user: str | None, place: Place | str | None = None, limit: int = 5
    ) -> list[Chunk]:
        """The passages that bear on the query, best first; none for somebody anonymous."""
        if user is None:
            return []
        return await self.knowledge.search(query, audience_of(user, place), limit)

    # What is known of a person.

    async def context(self, *, user: str, place: Place | str | None = None) -> UserContext:
        """What they told of themselves, the facts that matter most, and their open tasks."""
        named, where = user_named(user), place_of(place)
        facts = await foremost(self.store, named, Audience.of(named, where), self.clock())
        tasks = await self.tasks.list(named, place=None if where.private else where.key)
        known = await self.contexts.view(named, where)
        return replace(known, long_term_facts=tuple(facts), open_tasks=tuple(tasks))

    async def set_context(
        self, field: str, value: str | bool | None, *, user: str, place: Place | str | None = None
    ) -> UserContext:
        """Set a field of the profile or the preferences, or add to a list; an empty value forgets it. The
        field `mode` says what the conversation there is for: companion, study or work."""
        named, where = user_named(user), place_of(place)
        await self._once_erased(named)
        value = "" if value is None else str(value)
        if field.strip().lower() == "mode":
            await self._set_mode(value.strip().lower(), named, where)
        else:
            try:
                entry = entry_for(field, value, self.clock())
            except ValueError as error:
                raise BadInput(str(error)) from error
            await self.contexts.merge(named, where, [entry])
        return await self.context(user=named, place=where)

    async def _set_mode(self, mode: str, user: str, place: Place) -> None:
        if mode and mode not in MODES:
            raise BadInput(f"there is no mode {mode!r}; there are {', '.join(MODES)}, and none at all")
        talk = self._incoming("", user, place, None, None).conversation_id
        await self.conversations.set_mode(talk, owner_of(user, place), mode or None, self.clock())

    # Taking it along, and taking it away.

    async def export(self, *, user: str) -> dict[str, Any]:
        """Everything that `erase` takes away, as plain JSON values; `hachi memories import` reads it."""
        from agent.services.export import export

        return await export(self, user_named(user))

    async def preview_erase(self, *, user: str) -> Mapping[str, int]:
        """What `erase` would take away from the record now, by kind."""
        return await self._erasure.preview(user_named(user))

    async def erase(self, *, user: str) -> Erased:
        """Forget a person: everything of theirs, everywhere, for good, verified by looking. The receipt says
        what went and what is left. What they say meanwhile is heard afterwards, as from somebody new."""
        from agent.services.erasure import beside

        named = user_named(user)
        erasing = self._erasing.setdefault(named, asyncio.Lock())
        async with erasing:
            places = {*await self.transcript.places_of(named), *await self.traces.places_of(named)}
            return await self._erasure.erase(named, beside(self, places, self.recorder))

    async def _once_erased(self, user: str | None) -> None:
        """Whoever is just being erased is heard when that is done."""
        while user is not None and (erasing := self._erasing.get(user)) and erasing.locked():
            async with erasing:
                pass

    @cached_property
    def _erasing(self) -> WeakValueDictionary[str, asyncio.Lock]:
        """Held while a person is erased; nobody's name stays in here."""
        return WeakValueDictionary()

    @cached_property
    def _erasure(self) -> Erasure:
        from agent.services.erasure import scrub_with

        return Erasure(
            self.database,
            self.queue,
            self.indexing,
            self.index,
            self.knowledge,
            self.knowledge_index,
            self.clock,
            scrub_with(self),
            embedded=self.settings.qdrant_url is None,
        )

    @cached_property
    def reminders(self) -> Reminders:
        """Where surfaces say whom they can reach; what is due is then announced by itself."""
        return Reminders(self.database, self.queue, self.transcript, self.contexts, self.clock)

    # Upkeep.

    async def preview_purge(self) -> list[Leaving]:
        """What `purge` and `tidy` would take away now."""
        return await self.tidying.preview()

    async def tidy(self) -> list[Leaving]:
        """Take away what the settings `unused_days` and `max_memories` do not keep; says what went."""
        return await self.tidying.tidy()

    async def purge(self) -> list[Memory]:
        """Delete what has expired; says what went."""
        gone = await self.removal.purge()
        if gone:  # what they had replaced may be back
            await self.indexing.try_to_catch_up()
        return gone

    async def prune_traces(self, before: datetime | None = None) -> int:
        """Delete traces of before that time, or else those older than the setting `trace_days`. How many."""
        days = self.settings.trace_days
        if before is None and days is None:
            return 0
        return await self.traces.prune(before or self.clock() - timedelta(days=days or 0))

    async def reindex(self, progress: Progress | None = None) -> int:
        """Build both indexes anew from the record. How many rows they now show."""
        await self.index.wipe()
        shown = await self.indexing.catch_up(progress)
        if not await self.knowledge.empty():
            await self.knowledge_index.wipe()
            shown += await self.knowledge.catch_up(progress)
        return shown

    async def catch_up(self, progress: Progress | None = None) -> int:
        """Put into the index what it lacks: after a crash, or when the embedder was changed."""
        return await self.indexing.catch_up(progress)

    def _incoming(
        self,
        text: str,
        user: str | None,
        place: Place | str | None,
        conversation: str | None,
        author: str | None,
        instructions: str = "",
        earlier: Sequence[tuple[Role, str]] = (),
    ) -> Incoming:
        named = None if user is None else user_named(user)
        held = None if conversation is None else readable_name(conversation, "conversation")
        shown = None if author is None else readable_name(author, "author")
        return Incoming(
            text, named, self.clock(), place_of(place), held, shown, writable(instructions), tuple(earlier)
        )


def _told_in(memory: Memory, user: str, asked_in: Place) -> Place:
    """Where a correction of it is said: where it was told, if it still stands there and nobody else told it;
    asked in a place, there or not at all."""
    alone = tellers(memory.owners, memory.user_id) == {user_key(user)}
    where = [Place.parse(memory.place)] if asked_in.private else asked_in.containing()
    found = next((place for place in where if alone and place.key in memory.owners), PRIVATE)
    if found.private and not asked_in.private:
        raise NotFound(f"memory {memory.id!r} is not {user}'s to change here: somebody else told it")
    return found
