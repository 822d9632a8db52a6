"""The public API. Surfaces and programs call it.

async with Companion.open() as pet:
    reply = await pet.respond("I broke my shoulder", user="mickael")

Every method that reads takes a user, and a place where the conversation is not private. Errors are those of
`agent.errors`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.background.reminders import Reminders
from agent.background.scheduler import Schedule
from agent.services.arguments import draft_of, turn_request
from agent.settings import Settings
from agent.tracing.store.traces import Traces
from agent.turn.persona import read_persona
from agent.turn.streaming import ReplyStream
from agent.types import Reply, TurnRequest
from agent.types.client import ClientTurn
from agent.wiring import (
    Clock,
    Components,
    Runtime,
    build_services,
    open_components,
    open_runtime,
    utc_now,
)
from memory.audience import Place
from memory.documents.ingest import AddedDocument, IngestProgress, IngestResult
from memory.documents.library import DocumentLibrary
from memory.erasure.cleanup import CleanupItem
from memory.erasure.person.receipt import Erased
from memory.errors import MemoryFault
from memory.index.sync import Progress
from memory.people.profile import UserContext
from memory.records import (
    DEFAULT_IMPORTANCE,
    Chunk,
    Decision,
    Document,
    ForgetCandidate,
    Forgotten,
    Hit,
    Memory,
    MemoryType,
    MemoryUpdate,
    Message,
    Role,
)

if TYPE_CHECKING:
    from agents.models.interface import Model

Where = Place | str | None
"""A place, its written form, or None for a private conversation."""


class Companion:
    """Made by `Companion.open`."""

    def __init__(self, components: Components) -> None:
        self.components = components
        self.services = build_services(components)
        self._runtime: Runtime | None = None
        self._runtime_lock = asyncio.Lock()

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
        surface: str = "python",
    ) -> AsyncIterator["Companion"]:
        """Open the database; the index and the model's library are opened when they are first needed.

        `model` answers instead of the one the settings name; then a model consolidates conversations only
        where `upkeep_model` names one, which may be the same. Without `upkeep` no periodic job runs: for
        commands that look at something and end. `surface` is where people meet the companion, for traces.
        """
        settings = settings or Settings.load()
        read_persona(settings.persona)  # report a bad one now and not at the first message
        async with AsyncExitStack() as closing:
            components = await closing.enter_async_context(
                open_components(settings, clock, model, upkeep_model, surface)
            )
            pet = cls(components)
            closing.push_async_callback(pet._stop)
            if upkeep:
                schedule = Schedule(
                    pet.services.maintenance,
                    pet.services.reminders,
                    components.figures,
                    pet.services.erasure,
                    pet._wake_worker,
                    settings.purge_minutes,
                )
                await closing.enter_async_context(schedule.running())
            await pet._purge_undo()
            yield pet

    async def _purge_undo(self) -> None:
        """Delete what was forgotten and can no longer be brought back. A database that cannot be reached is
        reported by whatever needs it first."""
        with suppress(MemoryFault):
            await self.services.maintenance.purge_undo()

    @property
    def settings(self) -> Settings:
        return self.components.settings

    @property
    def clock(self) -> Clock:
        return self.components.clock

    @property
    def traces(self) -> Traces:
        return self.services.traces

    @property
    def knowledge(self) -> DocumentLibrary:
        """For `memory.documents.get_rag_context_for_query`."""
        return self.components.documents

    @property
    def reminders(self) -> Reminders:
        """Surfaces register here whom they can reach; due tasks are then announced."""
        return self.services.reminders

    # Talking.

    async def respond(
        self,
        text: str,
        *,
        user: str | None,
        place: Where = None,
        conversation: str | None = None,
        author: str | None = None,
        instructions: str = "",
        earlier: Sequence[tuple[Role, str]] = (),
        origins: Sequence[str] = (),
        client: ClientTurn | None = None,
        settle: bool = False,
    ) -> Reply:
        """One turn. The reply is durable when it returns; with `settle` the answer's memories are too.

        A program that speaks for a person may add `instructions` of its own and, as (role, text), the
        `earlier` messages of the conversation: the model sees those where the transcript has none. `origins`
        are the ids that a chat platform gave to the message, for when it is deleted there. `client` is what a
        client of a chat API sends beside the message; its history then is the conversation.
        """
        return await self._take_turn(
            turn_request(
                *(text, user, place, conversation, author, instructions, earlier, origins, client),
                now=self.clock(),
            ),
            settle=settle,
        )

    def stream(
        self,
        text: str,
        *,
        user: str | None,
        place: Where = None,
        conversation: str | None = None,
        author: str | None = None,
        instructions: str = "",
        earlier: Sequence[tuple[Role, str]] = (),
        origins: Sequence[str] = (),
        client: ClientTurn | None = None,
        settle: bool = False,
    ) -> ReplyStream:
        """The same, with the text as it is generated: `async for piece in pet.stream(…)`; the whole `Reply`
        is in the stream's `reply` afterwards."""
        request = turn_request(
            *(text, user, place, conversation, author, instructions, earlier, origins, client),
            now=self.clock(),
        )
        return ReplyStream(lambda on_text: self._take_turn(request, on_text, settle=settle))

    async def _take_turn(
        self, request: TurnRequest, on_text: Callable[[str], None] | None = None, *, settle: bool
    ) -> Reply:
        runtime = await self.runtime()
        from agent.turn.turn import take_turn

        await self.services.erasure.finished(request.user)
        return await take_turn(runtime.turn, request, on_text, settle=settle)

    async def settle(self, within: float | None = None) -> bool:
        """Wait until the background work that is due has been done, at most `within` seconds; then it goes on
        in the background. Returns whether it is done."""
        worker = (await self.runtime()).worker
        settling = asyncio.ensure_future(worker.settle())
        done, _ = await asyncio.wait([settling], timeout=within)
        if not done:
            settling.cancel()
            return False
        settling.result()
        await self.components.recorder.flush()
        return True

    async def runtime(self) -> Runtime:
        """What a turn needs, loaded when first asked for; a surface may ask early to save the first person
        the wait. Raises SettingsError."""
        async with self._runtime_lock:
            if self._runtime is None:
                self._runtime = await open_runtime(self.components, self.services.reminders.reaches)
            return self._runtime

    async def _wake_worker(self) -> None:
        (await self.runtime()).worker.wake()

    async def _stop(self) -> None:
        if self._runtime is not None:
            await self._runtime.worker.stop()

    # Memories.

    async def search_memories(
        self,
        query: str,
        *,
        user: str,
        place: Where = None,
        limit: int = 10,
        subjects: Sequence[str] = (),
        author: str = "",
    ) -> list[Hit]:
        """Facts and past messages, best first; with `author` what a person of this name said or, with
        "hachi", its replies, which no other search brings."""
        return await self.services.memories.search(
            query, user=user, place=place, limit=limit, subjects=subjects, author=author
        )

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
        place: Where = None,
        said_at: datetime | None = None,
        everybody: bool = False,
        author: str | None = None,
    ) -> Decision:
        """Remember one fact; `said_at` for what was said in the past. With `everybody` everybody may read it,
        whoever told it and wherever. `author` is what others call the user, as in `respond`. Durable when it
        returns. Raises BadInput for a value that cannot be used."""
        draft = draft_of(
            content=content, subjects=subjects, ttl=ttl, type=type, importance=importance, replaces=replaces
        )
        return await self.services.memories.remember(
            draft, user=user, place=place, said_at=said_at, everybody=everybody, author=author
        )

    async def remember_many(
        self, facts: Iterable[Mapping[str, Any]], *, user: str, place: Where = None
    ) -> list[Decision]:
        """Remember many facts at once, each a mapping with `content` and, as for `remember`, `subjects`,
        `ttl`, `type` and `importance`: the same decisions, some thousand a second without a model. Durable
        when it returns. Raises BadInput for a value that cannot be used, before anything is stored."""
        drafts = [draft_of(**fact) for fact in facts]
        return await self.services.memories.remember_many(drafts, user=user, place=place)

    async def memories(self, *, user: str, place: Where = None, limit: int | None = None) -> list[Memory]:
        """What is remembered, newest first."""
        return await self.services.memories.newest(user=user, place=place, limit=limit)

    async def memory(self, id: str, *, user: str, place: Where = None) -> Memory:
        """One memory, by its id or the first eight characters of it. Raises NotFound."""
        return await self.services.memories.get(id, user=user, place=place)

    async def update_memory(
        self, id: str, content: str, *, user: str, place: Where = None, **changes: Any
    ) -> Decision:
        """Correct a memory: a new one replaces it, and the old one stays in the history. `changes` are those
        arguments of `remember` that differ from the old memory's. In a place only what the user alone told
        there can be corrected; NotFound otherwise."""
        return await self.services.memories.update(id, content, user=user, place=place, **changes)

    async def delete_memory(self, id: str, *, user: str, place: Where = None) -> Forgotten:
        """Forget a memory: with what it had replaced, the user's messages that state it, and Hachi's replies
        that answered those or repeat it, for every reader. Returns what was taken; its `memory` is the one
        that was named, and `undo_forget` brings all of it back until `undo_until`. Others who said the same
        keep theirs, and so does the place where they said it. In a place only what may be read there;
        NotFound for what the user did not tell."""
        return await self.services.memories.delete(id, user=user, place=place)

    async def messages(
        self, *, user: str, place: Where = None, limit: int = 20, before: str | None = None
    ) -> list[Message]:
        """Messages, newest first; with `before`, those older than the message with this id. A forgotten one
        has no text and `forgotten_at`."""
        return await self.services.transcripts.page(user=user, place=place, limit=limit, before=before)

    async def delete_message(self, id: str, *, user: str) -> Forgotten:
        """Forget one of the user's messages with the reply to it, and the memories that rest on it alone.
        Raises NotFound for anybody else's."""
        return await self.services.memories.delete_message(id, user=user)

    async def find_to_forget(
        self, words: str, *, user: str, place: Where = None
    ) -> tuple[ForgetCandidate, ...]:
        """What the user told that contains these words, for `forget`. Nothing is forgotten by this."""
        return await self.services.memories.find_to_forget(words, user=user, place=place)

    async def forget(
        self, candidates: Sequence[ForgetCandidate], *, user: str, place: Where = None
    ) -> list[Forgotten]:
        """Forget what the person confirmed of `Reply.forget`. Returns a receipt for each, without those that
        were forgotten with another one."""
        return await self.services.memories.forget(candidates, user=user, place=place)

    async def undo_forget(self, id: str, *, user: str) -> Forgotten:
        """Bring back what was forgotten, by the receipt's `undo_id` or its first eight characters.
        Returns what came back. Raises NotFound once it is gone for good."""
        return await self.services.memories.undo_forget(id, user=user)

    async def make_private(self, id: str, *, user: str, place: Where = None) -> Memory:
        """What the user told in a place becomes theirs alone: the memory, the messages that told it and the
        replies to those leave all that is read there. Raises NotFound where the memory is in no place, and
        where somebody else told it too."""
        return await self.services.memories.make_private(id, user=user, place=place)

    async def history(self, id: str, *, user: str, place: Where = None) -> list[MemoryUpdate]:
        """What replaced what, when and why, along this memory's chain, oldest first. In a place, what
        happened for that place."""
        return await self.services.memories.history(id, user=user, place=place)

    async def undo(self, id: str, *, user: str, place: Where = None) -> MemoryUpdate:
        """Undo the last replacement this memory took part in: what was replaced holds again. In private for
        the user alone; in a place for the place and for them, unless somebody else also told what would give
        way. Raises NotFound where there is nothing to undo, or it is not theirs."""
        return await self.services.memories.undo(id, user=user, place=place)

    async def import_messages(
        self,
        messages: Sequence[dict[str, Any]],
        *,
        user: str,
        place: Where = None,
        conversation: str | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Import a transcript: mappings with `author`, `text`, `sent_at` (aware) and optionally `id`, in
        order. Importing the same messages again changes nothing. Returns how many there were."""
        await self.services.transcripts.import_messages(
            messages, user=user, place=place, conversation=conversation, progress=progress
        )
        return len(messages)

    # Documents.

    async def add_knowledge(
        self,
        paths: Sequence[str | Path],
        *,
        user: str | None = None,
        place: Where = None,
        progress: Callable[[IngestProgress], None] | None = None,
    ) -> IngestResult:
        """Read files, and all documents in folders: for everybody, or for the named user or place. Unchanged
        files are skipped; the result names the files that cannot be read. Raises NotFound for a missing path
        before anything is read."""
        return await self.services.documents.add_paths(paths, user=user, place=place, progress=progress)

    async def add_document(
        self, name: str, content: str | bytes, *, user: str | None = None, place: Where = None
    ) -> AddedDocument:
        """Store one document: Markdown, text, HTML or PDF, told by the ending of its `name`. A document of
        the same name and owner is replaced. Raises BadInput where it cannot be read."""
        return await self.services.documents.add(name, content, user=user, place=place)

    async def knowledge_documents(self, *, user: str, place: Where = None) -> list[Document]:
        """The documents that may be read there, by path."""
        return await self.services.documents.readable(user=user, place=place)

    async def remove_knowledge(
        self, what: str, *, user: str | None = None, place: Where = None
    ) -> list[Document]:
        """Remove a file, all documents from below a folder, or a document by its id: of everybody's, or of
        the named user's or place's own. Raises NotFound."""
        return await self.services.documents.remove(what, user=user, place=place)

    async def search_knowledge(
        self, query: str, *, user: str | None, place: Where = None, limit: int = 5
    ) -> list[Chunk]:
        """The passages that answer the query, best first; none for an anonymous reader."""
        return await self.services.documents.search(query, user=user, place=place, limit=limit)

    # A person.

    async def context(self, *, user: str, place: Where = None) -> UserContext:
        """What they told of themselves, their most important facts, and their open tasks."""
        return await self.services.profiles.get(user=user, place=place)

    async def set_context(
        self, field: str, value: str | bool | None, *, user: str, place: Where = None
    ) -> UserContext:
        """Set a field of the profile or the preferences, or add to a list; an empty value removes it. The
        field `mode` says what the conversation is for: companion, study or work."""
        return await self.services.profiles.set(field, value, user=user, place=place)

    async def export(self, *, user: str) -> dict[str, Any]:
        """Everything that `erase` deletes, as plain JSON values; `hachi memories import` reads it."""
        return await self.services.exports.export(user=user)

    async def preview_erase(self, *, user: str) -> Mapping[str, int]:
        """What `erase` would delete from the database now, by kind."""
        return await self.services.erasure.preview(user=user)

    async def erase(self, *, user: str) -> Erased:
        """Erase a person: everything of theirs, everywhere, for good, and look whether it is gone. Returns
        the receipt. What they say meanwhile is taken up afterwards, as from somebody new."""
        return await self.services.erasure.erase(user=user)

    # Maintenance.

    async def preview_purge(self) -> list[CleanupItem]:
        """What `purge` and `tidy` would delete now."""
        return await self.services.maintenance.cleanup.preview()

    async def tidy(self) -> list[CleanupItem]:
        """Delete what the settings `unused_days` and `max_memories` do not keep, and return it."""
        return await self.services.maintenance.cleanup.run()

    async def purge(self) -> list[Memory]:
        """Delete memories that have expired, and return them."""
        return await self.services.maintenance.purge()

    async def prune_traces(self, before: datetime | None = None) -> int:
        """Delete traces from before that time, or else those older than the setting `trace_days`. Returns how
        many it deleted."""
        return await self.services.maintenance.prune_traces(before)

    async def reindex(self, progress: Progress | None = None) -> int:
        """Rebuild the index from the database. Returns how many rows they hold."""
        return await self.services.maintenance.reindex(progress)

    async def catch_up(self, progress: Progress | None = None) -> int:
        """Let the index follow what has changed; one that is new or was damaged is filled. Returns how
        many rows that were. A search need not wait for it. Raises IndexUnavailable or EmbedderUnavailable."""
        return await self.components.sync.catch_up(progress)
