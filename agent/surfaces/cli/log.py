"""Write `hachi.log`, and decisions on memories to `decisions.jsonl`, in the data folder.

The log holds ids but no facts; a line is text, or JSON for an event. The lines of `decisions.jsonl` are JSON
and hold the facts.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING

from agent.tracing.redact import Redaction, secret_values
from agent.tracing.render.text import harmless, harmless_json
from agent.types.home_files import DECISIONS, LOG, OLDER_FILES

if TYPE_CHECKING:
    from agent.settings import Settings
    from memory.facts.decision_log import Facts

DECIDED = logging.getLogger("hachi.decisions")
"""The logger of `memory.facts.decision_log`, named here because most commands do not load that module."""

MAX_BYTES = 5_000_000
"""Maximum bytes of one log file."""


@contextmanager
def logging_to(settings: "Settings", verbose: bool) -> Iterator[None]:
    """Log to the files, and with `verbose` to stderr. If a file cannot be written, the command runs
    anyway."""
    redaction = Redaction(values=secret_values(settings))
    handlers = [_file_handler(settings.home / LOG), *([logging.StreamHandler()] if verbose else [])]
    for handler in handlers:
        handler.setFormatter(_Formatter(redaction))
        handler.setLevel(settings.log_level)
    decided = handlers.copy()
    if settings.decisions != "off":
        decided.append(_file_handler(settings.home / DECISIONS))
        decided[-1].setFormatter(_Formatter(redaction, settings.decisions))
    ours = logging.getLogger("hachi")
    before = ours.level, DECIDED.level, logging.root.handlers.copy(), DECIDED.handlers.copy()
    ours.setLevel(settings.log_level)
    DECIDED.setLevel(logging.INFO)
    logging.root.handlers += handlers
    DECIDED.handlers += decided
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        ours.setLevel(before[0])
        DECIDED.setLevel(before[1])
        logging.root.handlers[:], DECIDED.handlers[:] = before[2:]
        for handler in decided:
            handler.close()


class _Formatter(logging.Formatter):
    """Formats text, or JSON for an event. The setting decides how much of the `facts` is written."""

    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self, redaction: Redaction, facts: "Facts" = "off") -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self.converter = time.gmtime
        self._redaction = redaction
        self._facts = facts

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if not message.startswith('{"event"'):
            return self._redaction.text(harmless(super().format(record)))
        if record.name == DECIDED.name:
            from memory.facts.decision_log import without_facts

            message = without_facts(message, self._facts)
        message = harmless_json(message)
        return self._redaction.text(f'{{"time": "{self.formatTime(record)}", {message[1:]}')


class _FileHandler(RotatingFileHandler):
    """A log file that drops lines if the disk is full, so that the conversation goes on."""

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
