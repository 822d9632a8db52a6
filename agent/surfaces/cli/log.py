"""The log, `hachi.log` in the data folder. Decisions and extractions are lines of JSON, all else is text."""

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.tracing.redact import Redaction, own_secrets

if TYPE_CHECKING:
    from agent.settings import Settings

NAME = "hachi.log"
MAX_BYTES = 5_000_000
"""Of one file."""
OLDER_FILES = 3


@contextmanager
def logging_to(settings: "Settings", verbose: bool) -> Iterator[None]:
    """Log to the file, and with `verbose` to stderr. Commands also run when the file cannot be written."""
    handlers = [_file_handler(settings.home / NAME), *([logging.StreamHandler()] if verbose else [])]
    logger = logging.getLogger("hachi")
    level, formatter = logger.level, _Formatter(Redaction(values=own_secrets(settings)))
    logger.setLevel(settings.log_level)
    for handler in handlers:
        handler.setFormatter(formatter)
        logging.root.addHandler(handler)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        logger.setLevel(level)
        for handler in handlers:
            logging.root.removeHandler(handler)
            handler.close()


def events(home: Path, kind: str, user: str | None = None) -> Iterator[dict[str, Any]]:
    """The JSON lines of a kind (``memory_decision``, ``memory_extraction``), oldest first; of one user or of
    all. Lines that cannot be read are skipped."""
    names = [f"{NAME}.{number}" for number in range(OLDER_FILES, 0, -1)]
    for path in (home / name for name in [*names, NAME]):
        if not path.is_file():
            continue
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                event = _event(line)
                if event.get("event") == kind and user in (None, event.get("user_id")):
                    yield event


def _event(line: str) -> dict[str, Any]:
    if line.startswith("{"):
        with suppress(ValueError):  # cut short by a full disk
            event: dict[str, Any] = json.loads(line)
            return event
    return {}


class _Formatter(logging.Formatter):
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self, redaction: Redaction) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self.converter = time.gmtime
        self._redaction = redaction

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if not message.startswith('{"event"'):
            return self._redaction.text(super().format(record))
        return self._redaction.text(f'{{"time": "{self.formatTime(record)}", {message[1:]}')


class _FileHandler(RotatingFileHandler):
    """A full disk costs the log, not the conversation."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass

    def close(self) -> None:
        with suppress(OSError):
            super().close()


def _file_handler(path: Path) -> logging.Handler:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _FileHandler(path, maxBytes=MAX_BYTES, backupCount=OLDER_FILES, encoding="utf-8")
    except OSError:
        return logging.NullHandler()
