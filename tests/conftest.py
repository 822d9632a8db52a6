"""What tests of several packages share: the clock, a companion in its own folder, a scripted model's
server."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
import sqlite3
import sys
import tempfile
import traceback
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, closing, suppress
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from xdist import is_xdist_controller, is_xdist_worker

from hachi.pytest_plugin import hachi_clock, hachi_companion, hachi_model

if TYPE_CHECKING:
    from postgresql_server import Server
    from scripted_server import ScriptedServer
    from sqlalchemy import Engine

    from hachi.testing import FixedClock

sys.path.insert(0, str(Path(__file__).parent / "doubles"))

__all__ = ["hachi_clock", "hachi_companion", "hachi_model"]

SETTINGS = ("HACHI_", "OPENAI_", "QDRANT_", "DATABASE_URL", "DISCORD_", "SLACK_")


@pytest.fixture(scope="session", autouse=True)
def _no_authorities(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let HTTP clients load no certificates. Each would read some 150, which takes 20 ms, and tests need
    none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SSL_CERT_FILE", raising=False)
        patch.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("authorities")))
        yield


class Connections:
    """Records tasks that take a second connection of a database while they have one. If all tasks did, they
    would wait for each other."""

    def __init__(self) -> None:
        self.second: list[str] = []
        self._taken: dict[Any, tuple[Any, Any]] = {}

    def watch(self, engine: Engine) -> None:
        from sqlalchemy import event

        def taken(_: Any, record: Any, __: Any) -> None:
            with suppress(RuntimeError):  # raised without an event loop
                self._taken.pop(record, None)  # reported twice if the server closed it
                self.asked(engine)
                self._taken[record] = (engine, asyncio.current_task())

        def given_back(_: Any, record: Any) -> None:
            self._taken.pop(record, None)

        event.listen(engine, "checkout", taken)
        event.listen(engine, "checkin", given_back)
        event.listen(engine, "detach", given_back)

    def asked(self, engine: Engine) -> None:
        """Note the stack of a task that asks for a connection of this engine, if it has one."""
        if (engine, asyncio.current_task()) in self._taken.values():
            self.second.append(_stack_of_the_task())


def _stack_of_the_task() -> str:
    """Return the task's stack. SQLAlchemy calls its drivers in a greenlet, whose own stack does not show the
    caller."""
    import greenlet

    outside = greenlet.getcurrent().parent
    return "".join(traceback.format_stack(outside.gr_frame if outside else None, limit=20))


CONNECTIONS = Connections()


@pytest.fixture(autouse=True)
def _one_connection_at_a_time(request: pytest.FixtureRequest) -> Iterator[None]:
    CONNECTIONS.second.clear()
    yield
    if CONNECTIONS.second and "several_connections" not in request.fixturenames:
        pytest.fail("a second connection was taken inside a transaction:\n" + CONNECTIONS.second[0])


@pytest.fixture
def several_connections() -> None:
    """Allow several connections in a test that needs them."""


@pytest.fixture(scope="session", autouse=True)
def _statements_compiled_once() -> Iterator[None]:
    """Share compiled statements between all engines of a kind. Each engine would compile those of a turn
    itself, some 40 ms. The result depends only on the kind and the server, which are the same in all
    tests."""
    from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg

    from memory.sql.engine import connecting as engine
    from memory.sql.engine.database import Database
    from memory.sql.engine.loop_sqlite import LoopSQLite

    create, alone, compiled = engine.create_async_engine, Database._alone, dict[str, Any]()

    def sharing(url: Any, **given: Any) -> Any:
        created = create(url, **given)
        mine = created.sync_engine
        mine._compiled_cache = compiled.setdefault(mine.dialect.name, mine._compiled_cache)
        CONNECTIONS.watch(mine)
        return created

    def watched(self: Database, *given: Any) -> Any:  # on SQLite it uses connections outside the pool
        CONNECTIONS.asked(self.engine.sync_engine)
        return alone(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "create_async_engine", sharing)
        patch.setattr(Database, "_alone", watched)
        for dialect in (LoopSQLite, PGDialect_asyncpg):
            patch.setattr(dialect, "__hash__", lambda self: hash(type(self)))
            patch.setattr(dialect, "__eq__", lambda self, other: type(self) is type(other))
        yield


@pytest.fixture(scope="session", autouse=True)
def _documents_parsed_here() -> Iterator[None]:
    """Parse documents in this process: to start one takes 0.2 s. The tests of such processes start them."""
    from memory.documents import parsing
    from memory.documents.formats import child

    async def start() -> Any:
        return SimpleNamespace(kill=lambda: None, wait=lambda: asyncio.sleep(0))

    async def ask(_: Any, name: str, data: bytes, answers: list[Any]) -> None:
        answers += [json.loads(line) for line in child._answers(name, data)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsing, "_start", start)
        patch.setattr(parsing, "_ask", ask)
        yield


def _forget_settings(patch: pytest.MonkeyPatch) -> None:
    """Keep environment variables out of the tests."""
    patch.setattr("agent.settings.user_data_path", lambda name: Path("/nowhere") / name)
    for name in [name for name in os.environ if name.startswith(SETTINGS)]:
        patch.delenv(name)


ROOT = Path(__file__).parent.parent
PRODUCT = ("prompts", "memory", "tools", "agent", "hachi")
LIBRARIES = (
    "agents.testing aiohttp.web alembic.command asyncpg bs4 discord fastapi hypothesis mcp.server "
    "opentelemetry.sdk prompt_toolkit pypdf qdrant_client qdrant_edge respx selenium.webdriver "
    "slack_bolt.async_app sqlalchemy.ext.asyncio typer uvicorn wordllama"
).split()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Exempt the two million objects that are imported and collected from garbage collection. Scanning them
    takes a third of the collection's time and a tenth of the tests'. Libraries are imported first."""
    gc.disable()
    if is_xdist_controller(session):
        for finder in sys.meta_path:  # the workers tell slipcover of all files; to read them again takes 6 s
            if slipcover := getattr(finder, "sci", None):
                slipcover.source = None
        return
    if is_xdist_worker(session):
        with warnings.catch_warnings(action="ignore"):
            for name in LIBRARIES:
                import_module(name)
    from hypothesis import settings

    settings.register_profile("untimed", deadline=None)  # a slow machine must not fail a test
    settings.load_profile("untimed")


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000)


@pytest.fixture(autouse=True)
def _nobodys_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    _forget_settings(monkeypatch)


@pytest.fixture
def clock(hachi_clock: FixedClock) -> FixedClock:
    return hachi_clock


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder without messages. Copying it is faster than creating one."""
    from hachi import Companion, Settings

    folder = tmp_path_factory.mktemp("empty") / "home"

    async def make() -> None:
        settings = Settings(home=folder, embedder="bundled")
        async with Companion.open(settings, periodic_jobs=False):
            pass

    with pytest.MonkeyPatch.context() as patch:
        _forget_settings(patch)
        asyncio.run(make())
    return folder


@pytest.fixture
def home(tmp_path: Path, empty_home: Path) -> Path:
    return Path(shutil.copytree(empty_home, tmp_path / "home"))


@pytest.fixture
def rows(home: Path) -> Callable[..., list[dict[str, Any]]]:
    """`rows(sql, *values)`: what another process would now read from the database."""

    def query(sql: str, *values: Any) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(home / "hachi.db", timeout=15)) as connection:
            connection.row_factory = sqlite3.Row
            with connection:
                return [dict(row) for row in connection.execute(sql, values)]

    return query


@pytest.fixture
def end_claims(rows: Callable[..., list[dict[str, Any]]]) -> Callable[[], object]:
    """`end_claims()`: let the claims of jobs expire, as if no process had renewed them."""
    return lambda: rows("UPDATE work SET due_at = '2000-01-01 00:00:00.000000' WHERE claimed_by IS NOT NULL")


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    from scripted_server import ScriptedServer

    async with ScriptedServer.running() as running:
        yield running


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """The only PostgreSQL server of this process; to start one takes two seconds. Not in pytest's own folder:
    for root it runs as another user, whom pytest keeps out of there."""
    from postgresql_server import Server

    with tempfile.TemporaryDirectory(prefix="hachi-postgresql-") as folder:
        started = Server(Path(folder) / "data")
        yield started
        started.stop()


@pytest.fixture
def light_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundled embedder, loaded once for all tests."""
    from command import load_bundled_once

    from memory.index.embedders import bundled

    monkeypatch.setattr(bundled, "_load", load_bundled_once)


@pytest.fixture
async def open_pet(
    home: Path, clock: FixedClock, light_embedder: None, server: ScriptedServer
) -> AsyncIterator[Callable[..., Awaitable[Any]]]:
    """`await open_pet(given=…, **settings)`: a companion in `home`, closed when the test ends. `given` is a
    model that replaces the one in the settings; `consolidating` is one that consolidates. `periodic_jobs` is
    off by default. The model's server is closed after the companion, which finishes its work first and would
    retry for seconds without it."""
    from hachi import Companion, Settings

    async with AsyncExitStack() as closing:

        async def opened(
            given: Any = None, periodic_jobs: bool = False, consolidating: Any = None, **settings: Any
        ) -> Companion:
            chosen = Settings.load(**{"home": home, "embedder": "bundled", **settings})
            return await closing.enter_async_context(
                Companion.open(
                    chosen,
                    clock=clock,
                    model=given,
                    consolidation_model=consolidating,
                    periodic_jobs=periodic_jobs,
                )
            )

        yield opened
