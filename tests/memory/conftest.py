"""What the tests of memory share: a clock, both databases, and everything that remembers wired on one."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from postgresql_server import Server
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from hachi.testing import FixedClock
from memory.audience import Audience, Place
from memory.errors import EmbedderUnavailable
from memory.facts.candidate import Provenance
from memory.facts.history import History
from memory.facts.similar import Doubt, SimilarFacts
from memory.facts.writer import FactWriter
from memory.forgetting.cleanup import CleanUp, CleanupItem, Limits, expire
from memory.forgetting.forget_and_undo import Forgetting, make_private
from memory.forgetting.purge import Purge
from memory.index import Kind, Question, Ranked, Rankings
from memory.index.embedders.bundled import BundledEmbedder
from memory.index.indexing import Indexing
from memory.index.server.index import ServerIndex
from memory.people.tasks import Tasks
from memory.records import Decision, Hit, Memory, Message, NewMemory, Role
from memory.search.recall import Recall
from memory.sql.engine import Database
from memory.sql.jobs.queue import JobQueue
from memory.sql.memories.store import MemoryStore
from memory.sql.messages.reply_sources import note_answer
from memory.sql.messages.summaries import ConversationSummaries, owner_of
from memory.sql.messages.transcript import Transcript
from memory.sql.rests_on import record
from memory.sql.tables import changes, work

_writing = set[asyncio.Task[Any] | None]()
"""The tasks that have a transaction open that writes."""


@pytest.fixture(autouse=True)
def nobody_waits_in_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """No transaction that writes waits for embedder or index (`Reachable`)."""
    write = Database.write

    @asynccontextmanager
    async def writing(self: Database, *locks: Any, **given: Any) -> AsyncIterator[AsyncConnection]:
        async with write(self, *locks, **given) as connection:
            _writing.add(task := asyncio.current_task())
            try:
                yield connection
            finally:
                _writing.remove(task)

    monkeypatch.setattr(Database, "write", writing)


class Reachable:
    """Passes everything on to what it wraps, until it is away. Fails what waits for it in a transaction."""

    def __init__(self, real: Any, error: Exception) -> None:
        self.real = real
        self.away = False
        self._error = error

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.real, name)
        if not callable(found):
            return found
        assert asyncio.current_task() not in _writing, (
            f"{name} is waited for inside a transaction that writes"
        )
        if not self.away:
            return found

        async def refused(*_: Any, **__: Any) -> None:
            raise self._error

        return refused


class Ruling:
    """A judge that says the same of every doubt, and notes them."""

    def __init__(self, ruling: bool | Exception) -> None:
        self.ruling = ruling
        self.asked: list[list[Doubt]] = []

    async def __call__(self, doubts: Sequence[Doubt]) -> list[bool]:
        self.asked.append(list(doubts))
        if isinstance(self.ruling, Exception):
            raise self.ruling
        return [self.ruling for _ in doubts]


@dataclass
class Stack:
    """Everything that remembers, on one database and one index, as the companion wires it."""

    database: Database
    embedder: Reachable
    clock: FixedClock
    server: ServerIndex | None = None
    store: MemoryStore = field(init=False)
    _messages: Iterator[int] = field(default_factory=count, init=False)
    _logged: int = 0

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.database)
        self.history = History(self.database)
        self.transcript = Transcript(self.database)
        self.conversations = ConversationSummaries(self.database)
        self.tasks = Tasks(self.database)
        self.queue = JobQueue(self.database, self.clock)
        self.indexing = Indexing(self.database, self.embedder, self.clock, 100_000_000, self.server)
        self.recall = Recall(
            self.store, self.transcript, self.embedder, self.indexing, self.clock, self.conversations
        )
        self.similar = SimilarFacts(self.database, self.store, self.indexing.search, self.embedder, None)
        self.writer = FactWriter(
            self.database, self.store, self.similar, self.indexing, self.clock, importance_floor=0.3
        )
        self.forgetting = Forgetting(self.database, self.clock, timedelta(minutes=10))
        self.purge = Purge(self.database, self.clock)
        self.cleanup = CleanUp(self.database, self.store, self.purge, Limits(), self.clock)

    async def make_private(self, memory: Memory, user: str) -> None:
        await make_private(self.database, self.clock, memory, user)

    async def expire(self) -> list[Memory]:
        return await expire(self.database, self.clock)

    def rule(self, ruling: bool | Exception) -> Ruling:
        """From now on a judge rules so on every doubt."""
        self.similar.judge = judge = Ruling(ruling)
        return judge

    async def remember(
        self, content: str, user: str = "anna", place: str | None = None, **given: Any
    ) -> Decision:
        """One statement; `given` are fields of the draft and of its origin. A correction is made later."""
        if given.get("replaces") and "said_at" not in given:
            self.clock.advance(microseconds=1)
        about = {name: given.pop(name) for name in list(given) if name in NewMemory.__dataclass_fields__}
        origin = Provenance(user, given.pop("said_at", self.clock.now), Place.parse(place), **given)
        [decision] = await self.writer.remember([NewMemory(content, **about)], origin)
        return decision

    async def end_claims(self) -> None:
        """As if no process had renewed its claims of jobs for longer than they last."""
        claimed = update(work).where(work.c.claimed_by.is_not(None))
        await self.database.run(claimed.values(due_at=datetime(2000, 1, 1, tzinfo=UTC)))

    async def receive(
        self,
        text: str,
        user: str = "anna",
        place: str | None = None,
        *,
        role: Role = "user",
        id: str | None = None,
        author: str | None = None,
        conversation: str | None = None,
        sent_at: datetime | None = None,
        shown: Sequence[str] = (),
    ) -> str:
        """One line of the transcript; its id. A reply was `shown` what has these ids."""
        where = Place.parse(place)
        talk = conversation or (f"dm:{user}" if where.private else where.key)
        sent = sent_at or self.clock.now + timedelta(seconds=next(self._messages))
        message = Message(id or str(uuid4()), talk, role, author or user, text, sent)
        async with self.database.write() as connection:
            await self.transcript.append(connection, message, user=user, place=where, now=self.clock.now)
            if role == "assistant":
                await note_answer(connection, message, user, where)
            await record(connection, message.id, shown, "found")
        return message.id

    async def summarise(
        self, summary: str, user: str = "anna", place: str | None = None, *, conversation: str | None = None
    ) -> str:
        """A summary of a conversation, which covers one message more than the last; its id."""
        where = Place.parse(place)
        talk, owner = conversation or (f"dm:{user}" if where.private else where.key), owner_of(user, where)
        before = await self.conversations.of(talk, owner, self.clock.now)
        after = before.covered if before else 0
        assert await self.store_summary(summary, after, after + 1, owner, talk)
        kept = await self.conversations.of(talk, owner, self.clock.now)
        assert kept is not None
        return kept.id

    async def store_summary(
        self, summary: str, after: int, covered: int, owner: str = "user:anna", conversation: str = "talk"
    ) -> bool:
        """Write a summary that continues the stored one; whether it was accepted."""
        before = await self.conversations.of(conversation, owner, self.clock.now)
        revision = before.revision if before else 0
        async with self.database.write() as connection:
            given = {"after": after, "revision": revision, "covered": covered, "now": self.clock.now}
            written = await self.conversations.update_in(connection, conversation, owner, summary, **given)
        return written is not None

    async def delete(self, memory: Memory, user: str = "anna") -> bool:
        """Delete for good a memory that the person stated; whether they had."""
        return bool(await self.cleanup.delete([CleanupItem(memory, "unused")], user))

    async def known(self, user: str = "anna", place: str | None = None) -> set[str]:
        """The texts of all memories that may be read there."""
        return {memory.content for memory in await self.memories(user, place)}

    async def memories(self, user: str = "anna", place: str | None = None) -> list[Memory]:
        return await self.store.newest(Audience.of(user, Place.parse(place)), self.clock.now)

    async def shown(self, *ids: str | None) -> set[str]:
        """Which of these rows somebody's index shows."""
        known = [id for id in ids if id]
        kinds: list[Kind] = ["memory", "message", "summary"]
        index_rows = await self.indexing.engine.rows.shown(dict.fromkeys(kinds, known), self.clock.now)
        return {index_row.point.id for index_row in index_rows} & set(known)

    def let_the_index_lie(self, lies: Sequence[Memory]) -> None:
        """From now on every search finds these facts, whoever asks."""
        search, hits = self.indexing.search, tuple(Ranked(lie.id, 1.0, "memory") for lie in lies)

        async def lying(*questions: Question, **given: bool) -> Rankings:
            found = await search(*questions, **given)
            return replace(found, dense=(*hits, *found.dense), words=(*hits, *found.words))

        self.indexing.search = lying  # type: ignore[method-assign]

    async def logged(self) -> list[tuple[str, str, str]]:
        """The owners, kinds and ids of the changes that were logged since the last call."""
        new = select(changes).where(changes.c.seq > self._logged).order_by(changes.c.seq)
        rows = await self.database.rows(new)
        self._logged = rows[-1].seq if rows else self._logged
        return [(row.owner, row.kind, row.id) for row in rows]

    async def the_memory(self, user: str = "anna", place: str | None = None) -> Memory:
        [memory] = await self.memories(user, place)
        return memory

    async def search(
        self, question: str, user: str = "anna", place: str | None = None, **given: Any
    ) -> list[Hit]:
        return await self.recall.search(question, Audience.of(user, Place.parse(place)), **given)

    async def found(self, question: str, user: str = "anna", place: str | None = None) -> set[str]:
        """The texts that a search brings back there."""
        return {hit.content for hit in await self.search(question, user, place, limit=50)}

    async def reasons(self, id: str, user: str = "anna", place: str | None = None) -> list[str]:
        steps = await self.history.of(id, Audience.of(user, Place.parse(place)))
        return [step.reason for step in steps]


@pytest.fixture(scope="session")
def bundled() -> BundledEmbedder:
    return BundledEmbedder()


@pytest.fixture(scope="session")
def template_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sqlite")


@pytest.fixture
async def sqlite_url(template_home: Path, tmp_path: Path) -> str:
    """Of a fresh database with its tables, copied from a prepared one."""
    if not (template_home / "hachi.db").exists():
        await (await Database.open(None, template_home)).close()
    shutil.copy(template_home / "hachi.db", tmp_path / "hachi.db")
    return f"sqlite:///{tmp_path / 'hachi.db'}"


on_both = pytest.mark.parametrize("on_database", ["sqlite", "postgresql"], indirect=True)
ON_SQLITE = {"facts", "forgetting", "index", "embedders", "search"}
"""The folders whose tests run on SQLite alone, but for those marked `on_both`: the random stories, what
happens at the same time and the main paths. What they ask of SQL is tested on both in the folder sql."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each other test of a database runs on both."""
    decided = any("on_database" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "on_database" in metafunc.fixturenames and not decided:
        on = ["sqlite"] if metafunc.definition.path.parent.name in ON_SQLITE else ["sqlite", "postgresql"]
        metafunc.parametrize("on_database", on, indirect=True)


@pytest.fixture
def on_database(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def database_url(
    on_database: str, request: pytest.FixtureRequest, sqlite_url: str
) -> AsyncIterator[str]:
    """Of a fresh database with its tables."""
    if on_database == "sqlite":
        yield sqlite_url
        return
    postgresql: Server = request.getfixturevalue("postgresql")
    yield await postgresql.shared()
    await postgresql.empty_shared()


@pytest.fixture
async def database(database_url: str, tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(database_url, tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def open_again(database_url: str, tmp_path: Path) -> AsyncIterator[Callable[[], Awaitable[Database]]]:
    """Opens the test's database once more, as another process does."""
    async with AsyncExitStack() as closing:

        async def opened() -> Database:
            another = await Database.open(database_url, tmp_path)
            closing.push_async_callback(another.close)
            return another

        yield opened


StackBuilder = Callable[..., Awaitable[Stack]]


@pytest.fixture
async def build_stack(clock: FixedClock) -> AsyncIterator[StackBuilder]:
    """Further stacks: `build_stack(database, embedder, server)`; without one the index is in the process."""
    made: list[Stack] = []

    async def build(database: Database, embedder: Any, server: ServerIndex | None = None) -> Stack:
        reachable = Reachable(embedder, EmbedderUnavailable("the embedder is away"))
        made.append(Stack(database, reachable, clock, server))
        return made[-1]

    yield build
    for stack in made:
        await stack.indexing.stop()


@pytest.fixture
async def stack(database: Database, build_stack: StackBuilder, bundled: BundledEmbedder) -> Stack:
    """On both databases, with the embedder and the index that people have."""
    return await build_stack(database, bundled)


@pytest.fixture
async def another(
    stack: Stack, open_again: Any, build_stack: StackBuilder, bundled: BundledEmbedder
) -> Stack:
    """Another process on the same database."""
    return await build_stack(await open_again(), bundled)
