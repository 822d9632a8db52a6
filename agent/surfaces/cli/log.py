"""The log, `hachi.log` in the data folder, holds ids and no facts: a line of text, or of JSON for an event.
The decisions on memories, with the facts, are lines of JSON in a file of their own, `decisions.jsonl`."""

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agent.tracing.redact import REDACTED, Redaction, own_secrets
from agent.tracing.render.text import harmless, harmless_json

if TYPE_CHECKING:
    from agent.settings import Settings

NAME, DECISIONS = "hachi.log", "decisions.jsonl"
MAX_BYTES = 5_000_000
"""Of one file."""
OLDER_FILES = 3


@contextmanager
def logging_to(settings: "Settings", verbose: bool) -> Iterator[None]:
    """Log to the files, and with `verbose` to stderr. Commands also run when a file cannot be written."""
    redaction = Redaction(values=own_secrets(settings))
    handlers = [_file_handler(settings.home / NAME), *([logging.StreamHandler()] if verbose else [])]
    for handler in handlers:
        handler.setFormatter(_Formatter(redaction))
        handler.setLevel(settings.log_level)
    if settings.decisions != "off":
        decisions = _file_handler(settings.home / DECISIONS)
        decisions.setFormatter(_Formatter(redaction, "full" if settings.decisions == "on" else "redacted"))
        decisions.addFilter(_is_decision)
        handlers.append(decisions)
    loggers = logging.getLogger("hachi"), logging.getLogger("hachi.memory")
    levels = [logger.level for logger in loggers]
    for logger, level in zip(loggers, (settings.log_level, logging.INFO), strict=True):
        logger.setLevel(level)
    for handler in handlers:
        logging.root.addHandler(handler)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        for handler in handlers:
            logging.root.removeHandler(handler)
            handler.close()


class _Formatter(logging.Formatter):
    """Text, or JSON for an event. `content` of decisions on memories is what the line holds of them: "full",
    "redacted", or only the "ids"."""

    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self, redaction: Redaction, content: Literal["full", "redacted", "ids"] = "ids") -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self.converter = time.gmtime
        self._redaction = redaction
        self._content = content

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if not message.startswith('{"event"'):
            return self._redaction.text(harmless(super().format(record)))
        if _is_decision(record) and self._content != "full":
            message = _without_facts(message, REDACTED if self._content == "redacted" else None)
        message = harmless_json(message)
        return self._redaction.text(f'{{"time": "{self.formatTime(record)}", {message[1:]}')


def _is_decision(record: logging.LogRecord) -> bool:
    return record.getMessage().startswith('{"event": "memory_decision"')


def _without_facts(line: str, instead: str | None) -> str:
    """The line of decisions with `instead` in place of facts and reasons, which may quote facts."""
    event = json.loads(line)
    for decision in event["decisions"]:
        for name in ("fact", "reason"):
            decision.pop(name, None)
            if instead is not None:
                decision[name] = instead
    return json.dumps(event, ensure_ascii=False)


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
