"""Make SQLAlchemy's engine for a database: a SQLite file, or a PostgreSQL server by its URL."""

import importlib
import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic_core import from_json
from sqlalchemy import event
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.util.queue import Empty

from memory.errors import StoreUnavailable, how_to_install
from memory.sql.engine.errors import explain
from memory.sql.engine.loop_sqlite import begin, set_up

BUSY_SECONDS = 15.0
"""How long a write waits for another process's write on SQLite."""
CONNECT_SECONDS = 10.0
"""How long a PostgreSQL server may take to answer, unless its URL says otherwise."""
ANSWER_SECONDS = 60.0
"""How long a PostgreSQL server may take for one statement before it counts as hung."""
POOL = {
    "pool_size": 15,
    "max_overflow": 0,
    "pool_use_lifo": True,  # the most recently used connection has its statements and pages cached
}
"""Connections stay open: opening one takes longer than most transactions."""
FULL_SECONDS = 1.0
"""Seconds without an attempt to connect once the server had no connection left."""
STATEMENTS = 64
"""The most compiled statements that a connection to SQLite keeps, at some 10 kB each. A turn uses 40."""
PREPARED = 250
"""The most statements that a connection to PostgreSQL keeps. Each length of a list needs its own."""
MOST_LISTED = 16
"""Values of a list that each get a parameter of their own, so that the planner knows their number."""

_ISOLATION = "SET default_transaction_isolation = 'read committed'"
"""Our locks need no more than this. With a stricter default of the server, turns would fail."""

Engine = tuple[AsyncEngine, str]
"""The engine, and the database's name for messages."""


class NoFreeConnection(StoreUnavailable):
    """The server has no connection left for us."""


class _Queue(AsyncAdaptedQueuePool):
    """A pool that waits for one of its open connections if the server has no connection left."""

    _full_until = 0.0

    def _do_get(self) -> Any:
        give_up = time.monotonic() + self._timeout
        while True:
            now = time.monotonic()
            if now >= self._full_until or now > give_up:
                try:
                    return super()._do_get()
                except NoFreeConnection:
                    if now > give_up:
                        raise
                    self._full_until = now + FULL_SECONDS
            with suppress(Empty):
                return self._pool.get(True, FULL_SECONDS)


def engine_for(url: str | None, home: Path, setting: str) -> Engine:
    """Make the engine for the database at `url`, or for the SQLite file in `home`. It connects with the first
    transaction. `setting` is the name of the setting with the URL. Raises StoreUnavailable."""
    if url is None:
        return _sqlite(home / "hachi.db")
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # their text contains the URL, which may hold a password
        raise StoreUnavailable(f"{setting} is no URL; expected postgresql://user@host/name") from None
    kind = parsed.drivername.split("+")[0]
    if kind in {"postgresql", "postgres"}:
        return _postgresql(parsed)
    if kind != "sqlite":
        raise StoreUnavailable(
            f"{setting} names {parsed.drivername}; Hachi's database is postgresql:// or sqlite://"
        )
    if parsed.database in {None, "", ":memory:"}:
        raise StoreUnavailable(f"{setting} names no file; expected sqlite:///path/to/hachi.db")
    return _sqlite(Path(str(parsed.database)))


def _postgresql(url: URL) -> Engine:
    """Make the engine of a server. The driver parses the URL, so ``?host=/folder/of/socket`` and
    ``?sslmode=require`` work."""
    try:
        asyncpg = importlib.import_module("asyncpg")
    except ImportError as error:
        raise StoreUnavailable(f"PostgreSQL needs its driver: {how_to_install('postgres')}") from error
    seconds = _number(url, "connect_timeout", CONNECT_SECONDS)
    most = max(1, int(_number(url, "pool_size", POOL["pool_size"])))
    url = url.set(drivername="postgresql").difference_update_query(["connect_timeout", "pool_size"])
    where = str(url._replace(password=None).difference_update_query(["password", "sslpassword"]))

    async def connection() -> Any:
        try:
            made = await asyncpg.connect(
                url.render_as_string(hide_password=False), timeout=seconds, command_timeout=ANSWER_SECONDS
            )
            try:
                await made.execute(_ISOLATION)
            except BaseException:
                made.terminate()
                raise
        except asyncpg.TooManyConnectionsError as error:
            raise NoFreeConnection(explain(error, where)) from error
        except (asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
            raise StoreUnavailable(explain(error, where)) from error
        return made

    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connection,
        connect_args={"prepared_statement_cache_size": PREPARED},
        poolclass=_Queue,
        **POOL | {"pool_size": most},
    )
    event.listen(engine.sync_engine, "checkout", _refuse_closed)
    _pack_long_lists(engine.sync_engine.dialect)
    return engine, where


def _number(url: URL, name: str, default: float) -> float:
    try:
        return float(str(url.query.get(name, default)))
    except ValueError:
        raise StoreUnavailable(f"{name} in DATABASE_URL is no number") from None


def _refuse_closed(connection: Any, *_: Any) -> None:
    """Make the pool replace a connection that the server has closed, as the driver knows by itself."""
    if connection.driver_connection.is_closed():
        raise DisconnectionError


def _read_json(text: str) -> Any:
    """Read a column in a fifth of the time of `json`, which alone takes half of a character."""
    try:
        return from_json(text)
    except ValueError:
        return json.loads(text)


def _sqlite(path: Path) -> Engine:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(
            f"the folder {path.parent} cannot be made ({error.strerror}); set HACHI_HOME to one that can"
        ) from error
    url = URL.create("sqlite+loop", database=str(path))
    engine = create_async_engine(
        url,
        connect_args={"timeout": BUSY_SECONDS, "cached_statements": STATEMENTS},
        json_deserializer=_read_json,
        **POOL,
    )
    event.listen(engine.sync_engine, "connect", set_up)
    event.listen(engine.sync_engine, "begin", begin)
    _pack_long_lists(engine.sync_engine.dialect)
    return engine, str(path.absolute())


class LongLists(SQLCompiler):
    """A mix-in for a dialect's compiler that passes a long list of values as one parameter. Each length would
    make a statement of its own, and a person may have more messages than a statement may have parameters."""

    def _literal_execute_expanding_parameter(
        self, name: str, parameter: Any, values: Any, *, taken_names: Any
    ) -> tuple[list[tuple[str, Any]], str]:
        if len(values) <= MOST_LISTED or not isinstance(values[0], str | int) or parameter.literal_execute:
            return super()._literal_execute_expanding_parameter(  # type: ignore[no-any-return, no-untyped-call]
                name, parameter, values, taken_names=taken_names
            )
        key = f"{name}_list"
        template = self.compilation_bindtemplate if self._numeric_binds else self.bindtemplate
        given = template % {"name": key}
        if self.dialect.name == "sqlite":
            return [(key, json.dumps(list(values)))], f"SELECT value FROM json_each({given})"
        kind = self.dialect.type_compiler_instance.process(ARRAY(parameter.type))
        return [(key, list(values))], f"SELECT unnest({given}::{kind})"


def _pack_long_lists(dialect: Any) -> None:
    """Make an engine's dialect pass long lists as one parameter."""
    compiler = dialect.statement_compiler
    dialect.statement_compiler = type(f"Packing{compiler.__name__}", (LongLists, compiler), {})
