"""Tell the other processes on one PostgreSQL what a transaction has committed.

A notice may be missed while the server is away, so whoever listens looks by itself too, now and then.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from sqlalchemy import ColumnElement, Text, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction

from memory.errors import StoreUnavailable
from memory.process.identity import this_process
from memory.sql.engine.connecting import Connect

CHANNEL = "hachi"
RETRY_SECONDS = 5.0
"""After this time a lost connection is made again."""


class _Notify(GenericFunction[Any]):
    """`pg_notify` on PostgreSQL, and NULL on SQLite."""

    name = "pg_notify"
    type = Text()
    inherit_cache = True


@compiles(_Notify, "sqlite")
def _nothing(*_: Any, **__: Any) -> str:
    return "NULL"


def notice(about: ColumnElement[str]) -> ColumnElement[Any]:
    """Make what a statement returns to tell the other processes `about` what it was."""
    return _Notify(literal(CHANNEL), literal(f"{this_process()} ") + about)


async def listen(connect: Connect, act: Callable[[str], None]) -> None:
    """Call `act` with what another process's notice is about, and with nothing whenever some may have been
    missed."""
    me, ended = this_process(), asyncio.Event()

    def noticed(_connection: Any, _pid: int, _channel: str, said: str) -> None:
        process, _, about = said.rpartition(" ")
        if process != me:
            act(about)

    while True:
        with suppress(StoreUnavailable, OSError):
            connection = await connect()
            ended.clear()
            connection.add_termination_listener(lambda _: ended.set())
            try:
                await connection.add_listener(CHANNEL, noticed)
                act("")
                await ended.wait()
            finally:
                connection.terminate()
        await asyncio.sleep(RETRY_SECONDS)
