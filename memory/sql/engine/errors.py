"""Convert errors of SQLAlchemy and the drivers to StoreUnavailable with one line that says what to do."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy.exc import DBAPIError, IntegrityError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from memory.errors import StoreUnavailable

T = TypeVar("T")

TRIES = 8
"""How often a transaction is tried while concurrent ones change the same rows."""
CONFLICTS = {"40P01", "40001"}
"""PostgreSQL's codes for a detected deadlock and for a serialization failure."""

POOLED = (
    "a pooler in transaction mode is before it, as PgBouncer may be; name the server itself, or a pooler in "
    "session mode"
)
FULL = "the server has no connection left; raise its max_connections, or add ?pool_size=5 to DATABASE_URL"
ADVICE = (
    ("file is not a database", "this is no database, or a damaged one; move it away and restore a copy"),
    ("disk image is malformed", "the database is damaged; move it away and restore a copy"),
    ("malformed database schema", "the database is damaged; move it away and restore a copy"),
    ("disk is full", "the disk is full; make room, nothing that was accepted is lost"),
    ("disk I/O error", "the disk cannot be written; check that it has room and is sound"),
    ("readonly database", "the folder or file is read-only; give write access or set HACHI_HOME"),
    ("unable to open database file", "cannot be opened; check the folder's permissions or set HACHI_HOME"),
    ("database is locked", "another process has kept the database busy; try again when it is done"),
    ("prepared statement", POOLED),
    ("pooling mode", POOLED),
    ("too many connections", FULL),
    ("too many clients", FULL),
    ("connection slots", FULL),
    ("password authentication failed", "the server refused the password in DATABASE_URL"),
)


class Overtaken(StoreUnavailable):
    """A concurrent transaction wrote the same rows first. This one was rolled back; a retry sees its rows."""

    code = "overtaken"


async def retried(act: Callable[[], Awaitable[T]]) -> T:
    """Return what `act` returns. It is called up to `TRIES` times while it raises Overtaken."""
    for _ in range(TRIES - 1):
        try:
            return await act()
        except Overtaken:
            continue
    return await act()


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Raise database errors in the block as StoreUnavailable. `where` names the database in messages."""
    try:
        yield
    except IntegrityError as error:
        raise _overtaken(where) from error
    except DBAPIError as error:
        cause = error.orig or error
        if getattr(cause, "sqlstate", None) in CONFLICTS:
            raise _overtaken(where) from error
        raise StoreUnavailable(explain(cause, where)) from error
    except StatementError as error:
        if isinstance(error.orig, ValueError):
            raise error.orig from None  # a value that no column accepts, such as a time without a zone
        raise
    except PoolTimeoutError as error:
        raise StoreUnavailable(f"{where}: too much is asked at once; try again") from error
    except OSError as error:
        raise StoreUnavailable(f"{where} {_unreachable(error)}") from error


def _unreachable(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "does not answer"
    return f"cannot be reached ({error.strerror or error})"


def explain(error: BaseException, where: str) -> str:
    """Return one line: the database, and advice for this error, or else the error's first line."""
    lines = str(error).splitlines()
    reason = lines[0].rpartition(">: ")[2] if lines else type(error).__name__
    advice = next((advice for sign, advice in ADVICE if sign in reason), reason)
    return f"{where}: {advice}"


def _overtaken(where: str) -> Overtaken:
    return Overtaken(f"{where}: another writer changed the same data; try again")
