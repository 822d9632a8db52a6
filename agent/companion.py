"""The companion: the one place where everything is wired, opened and closed. Surfaces and programs call it.

async with Companion.open() as pet:
    reply = await pet.respond("I broke my shoulder", user="mickael")
"""

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agent.errors import BadInput
from agent.messages import Incoming, Reply
from agent.settings import Settings
from agent.streaming import ReplyStream
from memory.audience import Audience, Place
from memory.case import Origin
from memory.database import Database
from memory.embedders import Embedder, open_embedder
from memory.errors import IndexUnavailable, StoreUnavailable
from memory.history import History
from memory.index import Index, fingerprint_of
from memory.index.late import LateIndex
from memory.indexing import Indexing, Progress
from memory.likeness import Likeness
from memory.recall import Recall
from memory.records import DEFAULT_IMPORTANCE, Decision, Draft, Hit, Memory, MemoryType, MemoryUpdate
from memory.remember import Remembering
from memory.removal import Removal
from memory.store import MemoryStore
from memory.tasks import Tasks
from memory.tidying import Leaving, Limits, Tidying
from memory.transcript import Transcript
from memory.ttl import describe
from memory.work import WorkQueue

if TYPE_CHECKING:
    from agents.models.interface import Model

    from agent.models import ChosenModel
    from agent.turn import House

log = logging.getLogger("hachi")

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


class Companion:
    """Made by `Companion.open`. Every method that reads takes a user, and a place where it is not private;
    faults are those of `agent.errors`."""

    def __init__(
        self, settings: Settings, clock: Clock, database: Database, embedder: Embedder, model: "Model | None"
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.database = database
        self.embedder = embedder
        self._model = model
        self.index = LateIndex(self._open_index)
        self.store = MemoryStore(database)
        self.transcript = Transcript(database)
        self.tasks = Tasks(database)
        self.queue = WorkQueue(database)
        self.indexing = Indexing(self.store, self.transcript, self.index, embedder, clock)
        half_life = timedelta(days=settings.half_life_days) if settings.half_life_days else None
        self.recall = Recall(
            self.store, self.transcript, self.index, embedder, self.indexing, clock, half_life
        )
        self.likeness = Likeness(database, self.store, self.index, embedder, judge=None)
        self.remembering = Remembering(
            database, self.store, self.likeness, self.indexing, clock, settings.importance_floor
        )
        self._history = History(database)
        self.removal = Removal(database, self.store, self.index, self.queue, clock)

        unused_for = timedelta(days=settings.unused_days) if settings.unused_days else None
        limits = Limits(unused_for, settings.unimportant, settings.max_memories)
        self.tidying = Tidying(database, self.store, self.removal, limits, clock)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        settings: Settings | None = None,
        *,
        clock: Clock = utc_now,
        model: "Model | None" = None,
        upkeep: bool = True,
    ) -> AsyncIterator["Companion"]:
        """Open the record; the index and the model's library follow when they are first needed.

        `model` answers instead of the one the settings name. Without `upkeep` no background job runs: for
        commands that look at something and end.
        """
        settings = settings or Settings.load()
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
            pet = cls(settings, clock, database, embedder, model)
            closing.push_async_callback(pet.index.close)
            closing.push_async_callback(pet._note_uses)
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
        settle: bool = False,
    ) -> Reply:
        """One turn. The reply is durable when it returns; with `settle` the answer's memories are too."""
        from agent.turn import take_turn

        house = await self.house()
        incoming = self._incoming(text, user, place, conversation, author)
        return await take_turn(house, incoming, settle=settle)

    def stream(
        self,
        text: str,
        *,
        user: str | None,
        place: Place | str | None = None,
        conversation: str | None = None,
        author: str | None = None,
        settle: bool = False,
    ) -> ReplyStream:
        """The same, with the text as it is generated: `async for piece in pet.stream(…)`; the whole `Reply`
        is in the stream's `reply` afterwards."""
        incoming = self._incoming(text, user, place, conversation, author)

        async def turn(on_text: Callable[[str], None]) -> Reply:
            from agent.turn import take_turn

            return await take_turn(await self.house(), incoming, on_text, settle=settle)

        return ReplyStream(turn)

    async def settle(self) -> None:
        """Until the after-turn work that is due has been done."""
        await (await self.house()).aftercare.settle()

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
        return await self._history.of(id, _audience(user, None))

    async def undo(self, id: str, *, user: str) -> MemoryUpdate:
        """Take back the last replacement this memory took part in: what was replaced holds again. Raises
        NotFound where there is none."""
        update = await self._history.undo(id, _audience(user, None), user, self.clock())
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
        taken = await take_over(self.database, self.transcript, messages, incoming)
        await self.indexing.catch_up(progress)
        return taken

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
        """Build the index anew from the record. How many rows it now shows."""
        await self.index.wipe()
        return await self.indexing.catch_up(progress)

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

    _house: "House | None" = None
    _upkeep: "ChosenModel | None" = None

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
        from agent.aftercare import Aftercare
        from agent.judge import ModelJudge
        from agent.models import choose_model, given_model
        from agent.turn import House

        settings = self.settings
        model = given_model(self._model) if self._model else choose_model(settings)
        if settings.judge and (self._model or not settings.offline):
            self._upkeep = model
            if settings.upkeep_model and not self._model:
                self._upkeep = choose_model(settings.model_copy(update={"model": settings.upkeep_model}))
            self.likeness.judge = ModelJudge(self._upkeep)
        aftercare = Aftercare(
            self.queue, self.remembering, self.indexing, self.recall, self.index, self.clock
        )
        return House(
            settings=settings,
            clock=self.clock,
            model=model,
            database=self.database,
            transcript=self.transcript,
            tasks=self.tasks,
            queue=self.queue,
            recall=self.recall,
            remembering=self.remembering,
            aftercare=aftercare,
        )

    async def _note_uses(self) -> None:
        try:
            await self.recall.note_uses()
        except StoreUnavailable as error:
            log.warning("what was recalled is not noted: %s", error)

    async def _close_house(self) -> None:
        if self._house is not None:
            await self._house.aftercare.stop()
            await self._house.model.close()
            if self._upkeep is not None:
                await self._upkeep.close()

    async def _open_index(self, anew: bool) -> Index:
        settings, fingerprint = self.settings, fingerprint_of(self.embedder.name, self.embedder.dimension)
        if settings.qdrant_url:
            from memory.index.server import ServerIndex

            key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
            index = await ServerIndex.open(settings.qdrant_url, key, self.embedder.dimension, fingerprint)
            if anew:
                await index.wipe()
            return index
        from memory.index.edge import EdgeIndex

        return await EdgeIndex.open(settings.home / "index", self.embedder.dimension, fingerprint, anew=anew)

    def _incoming(
        self,
        text: str,
        user: str | None,
        place: Place | str | None,
        conversation: str | None,
        author: str | None,
    ) -> Incoming:
        named = None if user is None else _named(user)
        held = None if conversation is None else _name(conversation, "conversation")
        shown = None if author is None else _name(author, "author")
        return Incoming(text, named, self.clock(), _place(place), held, shown)


def _place(place: Place | str | None) -> Place:
    found = place if isinstance(place, Place) else Place.parse(place)
    for name in found.path:
        _name(name, "place")
    return found


def _named(user: str) -> str:
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


def _tags(subjects: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag for subject in subjects if (tag := subject.strip().lower())))
