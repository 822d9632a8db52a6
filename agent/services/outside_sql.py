"""Erases a person's data outside the database: traces, lines in files, and caches of this process.

Lines of the log, the decisions and the prompt history are overwritten with blanks in place, because other
processes keep appending to the file. If they rotate the file meanwhile, the open file is still the same one
under another name.
"""

import asyncio
import functools
import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent.models.choice.registry import remote_models
from agent.settings import Settings
from agent.tracing.store.filters import TraceFilter
from agent.types.home_files import DECISIONS, LOG, TYPED, rotated
from memory.errors import StoreUnavailable
from memory.forgetting.erasure_rows import ErasureProgress
from memory.text.quoting import names_any

if TYPE_CHECKING:
    from agent.wiring.components import Components

_PREFIX = re.compile(r"\S+ [A-Z]+ (?:[\w.]+: )?")
"""The time, level and logger at the beginning of a log line."""
_OURS = ("event", "method")
"""The fields of events whose words are Hachi's, not a person's."""


@dataclass(frozen=True)
class ErasureOutsideSql:
    parts: "Components"

    async def places(self, user: str) -> Collection[str]:
        return await self.parts.traces.places_of(user)

    async def clean(self, rows: ErasureProgress) -> None:
        """Remove the person outside the database: blank their lines in the log, the decisions and the prompt
        history; delete their traces and the traces of places where they wrote; empty other traces that show
        one of their rows; clear caches. Raises StoreUnavailable if the database cannot be reached, or if
        traces are written faster than they are deleted; run the erasure again then."""
        user, ids = rows.user, frozenset(rows.ids)
        logged = await asyncio.to_thread(blank_lines_of, self.parts.settings.home, user, ids)
        typed = await asyncio.to_thread(blank_typed, self.parts.settings.home, frozenset(rows.texts))
        await self.parts.recorder.forget(user, rows.places)
        await self.parts.recorder.forget_rows(ids)
        traces = await self.parts.traces.erase(user, rows.places)
        traces += await self.parts.traces.forget(ids)
        rows.counts.update({"log lines": logged, "typed lines": typed, "traces": traces})
        if await self.parts.traces.count(TraceFilter(user=user, kinds=frozenset())):
            raise StoreUnavailable(f"traces of {user} came in while it ran; run it again")
        self.parts.transcript.clear_caches()
        self.parts.store.forget_aliases()
        self.parts.figures.forget(user)
        _clear_bounded_caches()
        if clear := getattr(self.parts.embedder, "clear", None):
            clear()

    async def rewrite(self) -> None:
        await self.parts.traces.database.vacuum()

    def out_of_reach(self) -> Sequence[str]:
        """List, for the receipt, where else the person's data may remain."""
        return out_of_reach(self.parts.settings)


def out_of_reach(settings: Settings) -> tuple[str, ...]:
    """List where a person's data may remain, beyond Hachi's reach, with these settings."""
    named = {
        "backups and exports that you made: erase again after you have restored one": True,
        "what the model's provider keeps of the calls that were made": remote_models(settings),
        "free pages and the log of PostgreSQL, until its VACUUM and its checkpoint": settings.database_url,
        "the files of the Qdrant server, until its optimiser rewrites them": settings.qdrant_url,
        "the collector of HACHI_OTLP_ENDPOINT, which got a copy of each trace": settings.otlp_endpoint,
        "the messages on Discord": settings.discord_token,
        "the messages on Slack": settings.slack_bot_token,
    }
    return tuple(text for text, applies in named.items() if applies)


_CACHED = type(functools.lru_cache(lambda: None))


def _clear_bounded_caches() -> None:
    """Clear bounded caches, which may hold the person's texts. Unbounded caches hold constants."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("agent", "memory", "tools"):
            for value in list(vars(module).values()):
                if isinstance(value, _CACHED) and value.cache_parameters()["maxsize"] is not None:
                    value.cache_clear()


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
