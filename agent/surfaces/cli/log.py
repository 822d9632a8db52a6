"""The log: `hachi.log` in the data folder. A decision on a memory, and a model's look back, are lines of JSON
of their own, everything else a line to read."""

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from agent.settings import Settings

NAME = "hachi.log"
BYTES = 5_000_000
"""Of one file; three older ones are kept beside it."""
OLDER = 3


@contextmanager
def logging_to(settings: Settings, verbose: bool) -> Iterator[None]:
    """All of it goes to the file, and with `verbose` to stderr. Where the file cannot be written, the command
    still runs."""
    handlers = [_file(settings.home / NAME), *([logging.StreamHandler()] if verbose else [])]
    ours = logging.getLogger("hachi")
    before = ours.level
    ours.setLevel(settings.log_level)
    for handler in handlers:
        handler.setFormatter(_Lines())
        logging.root.addHandler(handler)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        ours.setLevel(before)
        for handler in handlers:
            logging.root.removeHandler(handler)
            handler.close()


def events(home: Path, kind: str) -> Iterator[dict[str, Any]]:
    """The lines of JSON of this kind that the log holds (``memory_decision``, ``memory_extraction``), oldest
    first, as far back as it goes."""
    names = [f"{NAME}.{number}" for number in range(OLDER, 0, -1)]
    for path in (home / name for name in [*names, NAME]):
        if not path.is_file():
            continue
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("{") and (entry := _entry(line, kind)):
                    yield entry


def _entry(line: str, kind: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None  # cut short by a full disk
    found = isinstance(entry, dict) and entry.get("event") == kind
    return entry if found else None


class _Lines(logging.Formatter):
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self.converter = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if not message.startswith('{"event"'):
            return super().format(record)
        return f'{{"time": "{self.formatTime(record)}", {message[1:]}'


class _File(RotatingFileHandler):
    """A disk that has filled up costs the log, not the conversation."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass

    def close(self) -> None:
        with suppress(OSError):
            super().close()


def _file(path: Path) -> logging.Handler:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _File(path, maxBytes=BYTES, backupCount=OLDER, encoding="utf-8")
    except OSError:
        return logging.NullHandler()
