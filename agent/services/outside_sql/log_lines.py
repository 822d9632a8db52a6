"""Erases a person from the files of lines in the data folder: the log, the decisions and the prompt history.

Lines are overwritten with blanks in place, because other processes keep appending to the file. If they rotate
the file at the same time, the open file is still the same one under another name.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Set
from contextlib import suppress
from pathlib import Path

from agent.types.home_files import DECISIONS, LOG, TYPED, rotated
from memory.text.short_ids import names_any

_PREFIX = re.compile(r"\S+ [A-Z]+ (?:[\w.]+: )?")
"""The time, level and logger at the beginning of a log line."""
_OURS = ("event", "method")
"""The fields of events whose words are Hachi's, not a person's."""


def blank_lines_of(home: Path, user: str | None, ids: Set[str]) -> int:
    """Blank the log's lines that are about the person or contain one of these ids. In the file of decisions,
    blank the person's lines, and remove decisions with one of the ids. With `user` None, only ids are
    matched. Returns how many lines changed."""
    named = re.compile(rf"(?<![\w./\\-]){re.escape(user or '')}(?![\w/\\-]|\.\w)")

    def log_line(line: bytes) -> bytes | None:
        text = line.decode("utf-8", "replace")
        return b"" if _is_about(text, user, named) or names_any(text, ids) else None

    def decisions(line: bytes) -> bytes | None:
        return _without_decisions(line, user, ids)

    changed = sum(_replace_lines(path, log_line) for path in _files(home, LOG))
    return changed + sum(_replace_lines(path, decisions) for path in _files(home, DECISIONS))


def _files(home: Path, name: str) -> list[Path]:
    return [path for file in rotated(name) if (path := home / file).is_file()]


def _is_about(text: str, user: str | None, named: re.Pattern[str]) -> bool:
    """Return whether the line is about the person: a field of its event is their id or a path with it, or its
    message names them. Logger and file names do not count."""
    if user is None:
        return False
    with suppress(ValueError):
        event = json.loads(text)
        if not isinstance(event, dict):
            return False
        values = [value for name, value in event.items() if name not in _OURS]
        path = f"{event.get('path')}/"
        return user in values or any(f"/{whose}/{user}/" in path for whose in ("users", "sessions"))
    prefix = _PREFIX.match(text)
    return named.search(text, prefix.end() if prefix else 0) is not None


def _without_decisions(line: bytes, user: str | None, ids: Set[str]) -> bytes | None:
    """Return a line of decisions without the person: empty if it is theirs, otherwise without the decisions
    that name one of these ids. None if nothing changes."""
    try:
        event = json.loads(line)
        decisions = event["decisions"]
    except (ValueError, TypeError, KeyError):
        # blanked before, or cut off by a full disk: then it may be anybody's
        return b"" if line.strip() else None
    if user and event.get("user_id") == user:
        return b""
    kept = [one for one in decisions if ids.isdisjoint(map(one.get, ("id", "target_id", "message_id")))]
    if len(kept) == len(decisions):
        return None
    return json.dumps(event | {"decisions": kept}, ensure_ascii=False).encode()


def _replace_lines(path: Path, change: Callable[[bytes], bytes | None]) -> int:
    """Overwrite each line for which `change` returns a new one, padded with blanks. A longer line becomes
    blanks."""
    changed = 0
    for start, line in _lines(path):
        new = change(line)
        if new is not None:
            _write(path, start, (new if len(new) <= len(line) else b"").ljust(len(line)))
            changed += 1
    return changed


def blank_typed(home: Path, texts: Collection[str]) -> int:
    """Blank the person's entries in the prompt history, and return how many. An entry is one or more lines
    that begin with a plus; the file does not say who typed it, so entries match by text."""
    path, meant = home / TYPED, {text.strip() for text in texts}
    entry: list[tuple[int, bytes]] = []
    blanked = 0
    for start, line in [*_lines(path), (0, b"")]:
        if line.startswith(b"+"):
            entry.append((start, line))
            continue
        text = b"\n".join(line[1:] for _, line in entry).decode("utf-8", "replace").strip()
        if entry and text in meant:
            blanked += 1
            for at, typed in entry:
                _write(path, at, b" " * len(typed))
        entry = []
    return blanked


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the offset of each line and the line without its end."""
    try:
        with path.open("rb") as file:
            start = 0
            for line in file:
                yield start, line.rstrip(b"\n")
                start += len(line)
    except FileNotFoundError:
        return


def _write(path: Path, start: int, line: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(line)
