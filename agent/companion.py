"""The companion: the one place where everything is wired, opened and closed. Surfaces and programs call it.

async with Companion.open() as pet:
    reply = await pet.respond("I broke my shoulder", user="mickael")
"""

import asyncio
import importlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from agent.archive import Archive, Clock, read_persona, utc_now
from agent.errors import BadInput
from agent.messages import Incoming, Reply, writable
from agent.reminders import Reminders
from agent.settings import Settings
from agent.streaming import ReplyStream
from memory.audience import GLOBAL, Audience, Place, user_key
from memory.case import Origin
from memory.conversations import owner_of
from memory.database import Database
from memory.embedders import open_embedder
from memory.erased import Erased
from memory.erasure import Erasure
from memory.errors import IndexUnavailable
from memory.foremost import foremost
from memory.indexing import Progress
from memory.knowledge import Candidate, Ingested, Reranker, Step
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
from memory.tidying import Leaving
from memory.ttl import describe
from memory.user_context import UserContext, entry_for

if TYPE_CHECKING:
    from agents.models.interface import Model

    from agent.models import ChosenModel
    from agent.turn import House

log = logging.getLogger("hachi")

MODES = ("companion", "study", "work")


class Companion(Archive):
    """Made by `Companion.open`. Every method that reads takes a user, and a place where it is not private;
    faults are those of `agent.errors`."""

    _model: "Model | None" = None
    _upkeep_model: "Model | None" = None
    _house: "House | None" = None
    _upkeep: "ChosenModel | None" = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        settings: Settings | None = None,
        *,
        clock: Clock = utc_now,
        model: "Model | None" = None,
        upkeep_model: "Model | None" = None,
        upkeep: bool = True,
    ) -> AsyncIterator["Companion"]:
        """Open the record; the index and the model's library follow when they are first needed.

        `model` answers instead of the one the settings name; then a model looks back at what was said only
        where `upkeep_model` names one, which may be the same. Without `upkeep` no background job runs: for
        commands that look at something and end.
        """
        settings = settings or Settings.load()
        read_persona(settings.persona)  # a wrong one is better told now than at the first message
        async with AsyncExitStack() as closing:
            url = settings.database_url.get_secret_value() if settings.database_url else None
            database = await Database.open(url, settings.home)
            closing.push_async_callback(database.close)
            embedder = await open_embedder(
                settings.chosen_embedder,
                api_key=settings.openai_api_key.get_secret_value() if settings.openai_api_key else None,
                base_url=settings.openai_base_url,
                cache_folder=settings.home,
            )
            closing.push_async_callback(embedder.close)
            pet = cls(settings, clock, database, embedder)
            pet._model, pet._upkeep_model = model, upkeep_model
            closing.push_async_callback(pet.index.close)
            closing.push_async_callback(pet.knowledge_index.close)
            closing.push_async_callback(pet.note_uses)
            closing.push_async_callback(pet._close_house)
            if upkeep:
                from agent.schedule import running

                await closing.enter_async_context(running(pet))
            yield pet

    # Talking.

    async def respond(
        self,
        text: str,
        *,
        user: str | None,
        place: Place | str | None = None,
        conversation: str | None = None,
        author: str | None = None,
        instructions: str = "",
        earlier: Sequence[tuple[Role, str]] = (),
        settle: bool = False,
    ) -> Reply:
        """One turn. The reply is durable when it returns; with `settle` the answer's memories are too.

        A program that speaks for a person may say what it wishes for itself (`instructions`) and, as
        (role, text), what was said `earlier`: that is shown to the model where the transcript has nothing.
        """
        from agent.turn import take_turn

        house = await self.house()
        incoming = self._incoming(text, user, place, conversation, author, instructions, earlier)
        await self._once_erased(incoming.user)
        return await take_turn(house, incoming, settle=settle)

    def stream(
        self,
        text: str,
        *,
        user: str | None,
        place: Place | str | None = None,
        conversation: str | None = None,
        author: str | None = None,
        instructions: str = "",
        earlier: Sequence[tuple[Role, str]] = (),
        settle: bool = False,
    ) -> ReplyStream:
        """The same, with the text as it is generated: `async for piece in pet.stream(…)`; the whole `Reply`
        is in the stream's `reply` afterwards."""
        incoming = self._incoming(text, user, place, conversation, author, instructions, earlier)

        async def turn(on_text: Callable[[str], None]) -> Reply:
            from agent.turn import take_turn

            house = await self.house()
            await self._once_erased(incoming.user)
            return await take_turn(house, incoming, on_text, settle=settle)

        return ReplyStream(turn)

    async def settle(self, within: float | None = None) -> bool:
        """Until the after-turn work that is due has been done; at most `within` seconds, then it goes on in
        the background. Whether it is done."""
        settling = asyncio.ensure_future((await self.house()).aftercare.settle())
        done, _ = await asyncio.wait([settling], timeout=within)
        if not done:
            settling.cancel()
        else:
            settling.result()
        return bool(done)

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
        return await self.recall.search(query, _audience(user, place), limit=limit, subjects=subjects)

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
        await self._once_erased(_named(user))
        draft = Draft(content, _tags(subjects), ttl, type, importance, replaces)
        origin = Origin(
            _named(user), said_at or self.clock(), _place(place), source="note", everybody=everybody
        )
        [decision] = await self.remembering.remember([draft], origin)
        return decision

    async def memories(
        self, *, user: str, place: Place | str | None = None, limit: int | None = None
    ) -> list[Memory]:
        """What is remembered, newest first."""
        return await self.store.newest(_audience(user, place), self.clock(), limit)

    async def memory(self, id: str, *, user: str, place: Place | str | None = None) -> Memory:
        """One memory, by its id or the first eight characters of it. Raises NotFound."""
        return await self.store.get(id, _audience(user, place), self.clock())

    async def update_memory(self, id: str, content: str, *, user: str, **changes: Any) -> Decision:
        """Say it differently: a new memory replaces the old one, which stays in the history. `changes` are
        those arguments of `remember` that are to differ from the old one's."""
        old = await self.memory(id, user=user)
        left = old.expires_at and old.expires_at - self.clock()
        kept: dict[str, Any] = {
            "subjects": old.subjects,
            "ttl": describe(left) if left else None,
            "type": old.type,
            "importance": old.importance,
            "place": Place.parse(old.place),
        }
        return await self.remember(content, user=user, replaces=old.id, **kept | changes)

    async def delete_memory(self, id: str, *, user: str) -> Memory:
        """Take it away for good, with what it had replaced. Others who said the same keep theirs."""
        memory = await self.memory(id, user=user)
        await self.removal.delete(memory, user)
        return memory

    async def history(self, id: str, *, user: str) -> list[MemoryUpdate]:
        """What replaced what, when and why, along the chain this memory stands in; oldest first."""
        return await self.past.of(id, _audience(user, None))

    async def undo(self, id: str, *, user: str) -> MemoryUpdate:
        """Take back the last replacement this memory took part in: what was replaced holds again. Raises
        NotFound where there is none."""
        update = await self.past.undo(id, _audience(user, None), user, self.clock())
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
        from agent.transcripts import take_over

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
        progress: Callable[[Step], None] | None = None,
    ) -> Ingested:
        """Read files, and all documents in folders: everybody's, or the user's or the place's that is named.
        What is unchanged is skipped, and what cannot be read is told. Raises NotFound where a path is not
        there, before anything is read."""
        return await self.knowledge.add(_paths(paths), _owner(user, place), progress)

    async def knowledge_documents(self, *, user: str, place: Place | str | None = None) -> list[Document]:
        """What may be read there, by path."""
        return await self.knowledge.documents(_audience(user, place))

    async def remove_knowledge(
        self, what: str, *, user: str | None = None, place: Place | str | None = None
    ) -> list[Document]:
        """Take away a file, all that was added from below a folder, or a document by its id: of everybody's,
        or of the user's or the place's own. Raises NotFound."""
        return await self.knowledge.remove(what, _owner(user, place))

    async def search_knowledge(
        self, query: str, *, user: str | None, place: Place | str | None = None, limit: int = 5
    ) -> list[Chunk]:
        """The passages that bear on the query, best first; none for somebody anonymous."""
        if user is None:
            return []
        return await self.knowledge.search(query, _audience(user, place), limit)

    # What is known of a person.

    async def context(self, *, user: str, place: Place | str | None = None) -> UserContext:
        """What they told of themselves, the facts that matter most, and their open tasks."""
        named, where = _named(user), _place(place)
        facts = await foremost(self.store, named, Audience.of(named, where), self.clock())
        tasks = await self.tasks.list(named, place=None if where.private else where.key)
        known = await self.contexts.view(named, where)
        return replace(known, long_term_facts=tuple(facts), open_tasks=tuple(tasks))

    async def set_context(
        self, field: str, value: str | bool | None, *, user: str, place: Place | str | None = None
    ) -> UserContext:
        """Set a field of the profile or the preferences, or add to a list; an empty value forgets it. The
        field `mode` says what the conversation there is for: companion, study or work."""
        named, where = _named(user), _place(place)
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
        from agent.portability import export

        return await export(self, _named(user))

    async def preview_erase(self, *, user: str) -> Mapping[str, int]:
        """What `erase` would take away from the record now, by kind."""
        return await self._erasure.preview(_named(user))

    async def erase(self, *, user: str) -> Erased:
        """Forget a person: everything of theirs, everywhere, for good, verified by looking. The receipt says
        what went and what is left. What they say meanwhile is heard afterwards, as from somebody new."""
        from agent.erasing import beside

        named = _named(user)
        erasing = self._erasing.setdefault(named, asyncio.Lock())
        async with erasing:
            return await self._erasure.erase(named, beside(self))

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
        from agent.erasing import scrub_with

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

    # The runtime, loaded when it is first needed: the Agents SDK takes seconds to import.

    async def house(self) -> "House":
        async with self._house_lock:
            if self._house is None:
                await asyncio.to_thread(importlib.import_module, "agent.turn")
                self._house = self._build_house()
                await self._take_up_work(self._house)
            return self._house

    @cached_property
    def _house_lock(self) -> asyncio.Lock:
        return asyncio.Lock()

    async def _take_up_work(self, house: "House") -> None:
        """Do what an earlier process accepted and did not finish."""
        try:
            await self.index.opened()
        except IndexUnavailable as error:
            log.warning("%s", error)
        else:
            if self.database.sqlite and not self.settings.qdrant_url:
                # Who holds the embedded index is alone at work here: what is claimed, a crash left behind.
                await self.queue.release(self.clock())
        house.aftercare.wake()

    def _build_house(self) -> "House":
        from agent.building import build_house

        house, self._upkeep = build_house(self, self._model, self._upkeep_model)
        return house

    def reranker(self) -> Reranker:
        return self._ask_which if self.settings.reranker == "model" else super().reranker()

    async def _ask_which(
        self, query: str, candidates: Sequence[Candidate], limit: int
    ) -> list[tuple[str, float]]:
        """A reranker that asks the model which does the upkeep."""
        house = await self.house()
        from agent.reranker import ModelReranker

        return await ModelReranker(self._upkeep or house.model)(query, candidates, limit)

    async def _close_house(self) -> None:
        if self._house is not None:
            await self._house.aftercare.stop()
            await self._house.model.close()
            if self._upkeep is not None:
                await self._upkeep.close()

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
        named = None if user is None else _named(user)
        held = None if conversation is None else _name(conversation, "conversation")
        shown = None if author is None else _name(author, "author")
        return Incoming(
            text, named, self.clock(), _place(place), held, shown, writable(instructions), tuple(earlier)
        )


def _place(place: Place | str | None) -> Place:
    found = place if isinstance(place, Place) else Place.parse(place)
    for name in found.path:
        _name(name, "place")
    return found


def _named(user: str) -> str:
    if not isinstance(user, str):
        raise BadInput("say who the user is: a name, as text; what is somebody's alone is nobody else's")
    return _name(user, "user")


def _name(text: str, what: str) -> str:
    """A name as it can be kept and compared."""
    try:
        text.encode()  # half of a surrogate pair, as bytes that are no text become, can be written nowhere
        if text.strip() and "\x00" not in text:
            return text.strip()
    except UnicodeEncodeError:
        pass
    raise BadInput(f"the {what} needs a name: some readable text that tells them from others")


def _audience(user: str, place: Place | str | None) -> Audience:
    return Audience.of(_named(user), _place(place))


def _owner(user: str | None, place: Place | str | None) -> str:
    """Whose documents are: the user's, the place's, or everybody's where neither is named."""
    where = _place(place)
    if user is not None and where.private:
        return user_key(_named(user))
    if user is not None:
        raise BadInput("documents are a user's or a place's; name one of the two")
    if place is not None and where.private:
        raise BadInput(
            "what is for one person alone needs their name: give a user instead of a private place"
        )
    return GLOBAL if where.private else where.key


def _paths(paths: Sequence[str | Path]) -> list[Path]:
    named = [paths] if isinstance(paths, str | Path) else paths
    if not isinstance(named, Sequence) or not all(isinstance(path, str | Path) for path in named):
        raise BadInput("name the files and folders to read, as text or paths")
    if not named or not all(os.fspath(path).strip() for path in named):
        raise BadInput("name the files and folders to read; one of them is empty, or there is none")
    return [Path(os.path.expanduser(path)) for path in named]


def _tags(subjects: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag for subject in subjects if (tag := subject.strip().lower())))
