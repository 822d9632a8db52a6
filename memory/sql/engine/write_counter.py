"""Repeats the counter of a SQLite file in a small file beside it, so that an older copy can be noticed.

The counter is `PRAGMA user_version`. It is raised while something is written, and stored here once it is
durable. So a lower one in the database means that writes are missing, as in a copy made without its `-wal`.
"""

from contextlib import suppress
from pathlib import Path


def counter_file(database: str) -> Path:
    return Path(f"{database}-seen")


def read_counter(database: str) -> int:
    """Return the counter that was stored last; 0 if there is none that can be read."""
    try:
        return int.from_bytes(counter_file(database).read_bytes()[:4])
    except OSError:
        return 0


def store_counter(database: str, counter: int) -> None:
    """A missing or lower counter raises no alarm, so a fault is passed over."""
    new = Path(f"{database}-seen.new")
    with suppress(OSError):
        new.touch(mode=0o600)
        new.write_bytes(counter.to_bytes(4))  # no digits, which an erasure could take for somebody's id
        new.replace(counter_file(database))
