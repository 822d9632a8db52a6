"""Everything that remembers, wired: the record, the two indexes, and what works on them. No model is known
here, and nothing slow is loaded: that is the companion's (`agent/companion.py`), which talks."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.errors import SettingsError
from agent.settings import Settings
from agent.tracing.recorder import Recorder
from agent.tracing.store import Traces
from agent.turn.budget import Budget
from memory.conversations.summaries import Conversations
from memory.documents import DocumentLibrary, FusedReranker, Reranker
from memory.erasure.cleanup import Limits, Tidying
from memory.erasure.removal import Removal
from memory.errors import StoreUnavailable
from memory.history import History
from memory.index import Index, fingerprint_of
from memory.index.embedders import Embedder
from memory.index.lazy import LateIndex
from memory.index.sync import Indexing
from memory.likeness import Likeness
from memory.people.profile_store import UserContexts
from memory.people.tasks import Tasks
from memory.remember import Remembering
from memory.search.recall import Recall
from memory.sql.engine import Database
from memory.sql.jobs import WorkQueue
from memory.sql.keys import Keys
from memory.sql.memories import MemoryStore
from memory.sql.messages import Transcript

log = logging.getLogger("hachi")

Clock = Callable[[], datetime]

LONGEST_PERSONA = Budget(20_000)
"""A persona is a page; what is longer was hardly meant to go into every prompt."""


def utc_now() -> datetime:
    return datetime.now(UTC)


class Archive:
    recorder: "Recorder | None" = None
    """Of what happens in turns, once there is one."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        database: Database,
        embedder: Embedder,
        elsewhere: Database | None = None,
    ) -> None:
        """`elsewhere` is where traces are kept, if not in the same database."""
        self.settings = settings
        self.clock = clock
        self.database = database
        self.embedder = embedder
        self.index = LateIndex(self._open_index)
        self.knowledge_index = LateIndex(self._open_knowledge_index)
        self.store = MemoryStore(database)
        self.transcript = Transcript(database)
        self.conversations = Conversations(database)
        self.contexts = UserContexts(database)
        self.tasks = Tasks(database)
        self.queue = WorkQueue(database)
        self.keys = Keys(database)
        self.traces = Traces(elsewhere or database, record=database if elsewhere else None)
        self.indexing = Indexing(self.store, self.transcript, self.index, embedder, clock, self.conversations)
        self.recall = Recall(
            self.store,
            self.transcript,
            self.index,
            embedder,
            self.indexing,
            clock,
            self.conversations,
            _days(settings.half_life_days),
        )
        self.likeness = Likeness(database, self.store, self.index, embedder, judge=None)
        self.remembering = Remembering(
            database, self.store, self.likeness, self.indexing, clock, settings.importance_floor
        )
        self.knowledge = DocumentLibrary(database, self.knowledge_index, embedder, clock, self.reranker())
        self.past = History(database)
        self.removal = Removal(database, self.store, self.index, self.queue, clock)
        limits = Limits(_days(settings.unused_days), settings.unimportant, settings.max_memories)
        self.tidying = Tidying(database, self.store, self.removal, limits, clock)

    async def _open_index(self, anew: bool) -> Index:
        return await self._an_index("hachi", "index", anew)

    async def _open_knowledge_index(self, anew: bool) -> Index:
        return await self._an_index("hachi-knowledge", "knowledge", anew)

    async def _an_index(self, collection: str, folder: str, anew: bool) -> Index:
        settings, fingerprint = self.settings, fingerprint_of(self.embedder.name, self.embedder.dimension)
        if settings.qdrant_url:
            from memory.index.server import ServerIndex

            key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
            index = await ServerIndex.open(
                settings.qdrant_url, key, self.embedder.dimension, fingerprint, collection=collection
            )
            if anew:
                await index.wipe()
            return index
        from memory.index.embedded import EdgeIndex

        return await EdgeIndex.open(settings.home / folder, self.embedder.dimension, fingerprint, anew=anew)

    def reranker(self) -> Reranker:
        """What puts passages of documents in order. Raises SettingsError."""
        kind, _, name = self.settings.reranker.partition(":")
        if kind == "fastembed" and name:
            from memory.documents.rerank.crossencoder import CrossEncoderReranker

            return CrossEncoderReranker(name)
        if self.settings.reranker != "fused":
            raise SettingsError(
                f"there is no reranker {self.settings.reranker!r}; HACHI_RERANKER takes fused, "
                "fastembed:NAME, model"
            )
        return FusedReranker()

    async def note_uses(self) -> None:
        """Write down what was recalled, as far as it is not yet."""
        try:
            await self.recall.note_uses()
        except StoreUnavailable as error:
            log.warning("what was recalled is not noted: %s", error)


def read_persona(path: Path | None) -> str:
    """Who the companion is, in a person's own words; empty where nobody said. Raises SettingsError."""
    if path is None:
        return ""
    try:
        with path.expanduser().open(encoding="utf-8-sig") as file:  # some editors begin a file with a mark
            text = file.read(LONGEST_PERSONA.amount + 1)
    except UnicodeDecodeError:
        raise SettingsError(f"HACHI_PERSONA: {path} is no text in UTF-8") from None
    except (OSError, RuntimeError, ValueError) as error:  # the latter two: a "~" or a path that is none
        why = getattr(error, "strerror", None) or error
        raise SettingsError(f"HACHI_PERSONA: {path} cannot be read ({why})") from error
    if "\x00" in text:
        raise SettingsError(f"HACHI_PERSONA: {path} is no text in UTF-8")
    if not text.strip():
        raise SettingsError(f"HACHI_PERSONA: {path} says nothing; give a Markdown file, or unset it")
    if len(text) > LONGEST_PERSONA.amount:
        raise SettingsError(f"HACHI_PERSONA: {path} has more than {LONGEST_PERSONA}; shorten it")
    return text.strip()


def _days(number: float | None) -> timedelta | None:
    return timedelta(days=number) if number else None
