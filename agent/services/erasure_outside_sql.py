"""Erases a person's data outside the database: traces, log lines, prompt history, and caches of this process.

Lines in files are overwritten with blanks in place, because other processes keep appending to the file. A
file that they rotate meanwhile is still the same file under another name.
"""

import asyncio
import functools
import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.tracing.recorder import Recorder
from agent.tracing.store import TraceFilter, Traces
from agent.turn.jobs import read_store_memories
from memory.erasure.person import SHORTEST_SOUGHT
from memory.erasure.receipt import ErasureProgress, OutsideStep
from memory.errors import StoreUnavailable
from memory.facts.candidate import CandidateFact
from memory.facts.similar import SimilarFacts
from memory.index.embedders import Embedder
from memory.sql.jobs import Job
from memory.sql.memories import MemoryStore
from memory.sql.messages import Transcript

LOG = "hachi.log*"
TYPED = "chat_history"


@dataclass(frozen=True)
class ErasureOutsideSql:
    home: Path
    traces: Traces
    recorder: Recorder
    transcript: Transcript
    store: MemoryStore
    embedder: Embedder
    similar: SimilarFacts
    clock: Callable[[], datetime]

    def steps(self, places: Collection[str]) -> tuple[OutsideStep, ...]:
        """Return the erasure steps. Each deletes its kind of data and returns counts by kind. `places` are
        those where the person spoke."""

        async def traces(progress: ErasureProgress) -> Mapping[str, int]:
            """Delete the person's traces. Raises StoreUnavailable if the trace database cannot be reached, or
            if traces are written faster than they are deleted; the erasure must then be run again."""
            await self.recorder.forget(progress.user, places)
            erased = await self.traces.erase(progress.user, places)
            if await self.traces.count(TraceFilter(user=progress.user, kinds=frozenset())):
                raise StoreUnavailable(f"traces of {progress.user} came in while it ran; run it again")
            return {"traces": erased}

        return traces, self._log_lines, self._typed_lines, self._caches

    async def _log_lines(self, progress: ErasureProgress) -> Mapping[str, int]:
        told = _names_or_says(progress.user, progress.texts)
        files = sorted(self.home.glob(LOG))
        return {"log lines": await asyncio.to_thread(lambda: sum(_blank_lines(path, told) for path in files))}

    async def _typed_lines(self, progress: ErasureProgress) -> Mapping[str, int]:
        return {"typed lines": await asyncio.to_thread(_blank_typed, self.home / TYPED, progress.messages)}

    async def _caches(self, _: ErasureProgress) -> Mapping[str, int]:
        self.transcript.forget_known()
        self.store.forget_aliases()
        _clear_bounded_caches()
        if clear := getattr(self.embedder, "clear", None):
            clear()
        return {}

    def clean_payload(
        self, kind: str, user: str, payload: dict[str, Any], ids: Collection[str]
    ) -> dict[str, Any] | None:
        """Clean the payload of another person's waiting job: remove hits from the erased person, and memories
        that only repeat such a hit. Returns None if nothing changes."""
        if not any(hit["id"] in ids for hit in payload.get("recalled", ())):
            return None
        drafts, origin = read_store_memories(Job("", kind, user, payload, 0))
        lost = replace(origin, recalled=tuple(hit for hit in origin.recalled if hit.id in ids))
        echoes = [
            bool(self.similar.echoed(CandidateFact(draft, lost, None, self.clock()))) for draft in drafts
        ]
        kept = [draft for draft, echo in zip(payload["drafts"], echoes, strict=True) if not echo]
        recalled = [hit for hit in payload["recalled"] if hit["id"] not in ids]
        return payload | {"drafts": kept, "recalled": recalled}


def _names_or_says(user: str, texts: Collection[str]) -> Callable[[str], bool]:
    """Return a test for log lines: whether a line names the person or contains what they said."""
    named = re.compile(rf"(?<!\w){re.escape(user)}(?!\w)")
    begun: dict[str, list[str]] = {}
    for spelling in (spelling for text in texts for spelling in _spellings(text)):
        if len(spelling) >= SHORTEST_SOUGHT:
            begun.setdefault(spelling[:SHORTEST_SOUGHT], []).append(spelling)

    def told(line: str) -> bool:
        if named.search(line):
            return True
        starts = range(len(line) - SHORTEST_SOUGHT + 1) if begun else ()
        return any(
            line.startswith(text, at)
            for at in starts
            for text in begun.get(line[at : at + SHORTEST_SOUGHT], ())
        )

    return told


def _spellings(text: str) -> Iterator[str]:
    """Yield the text as plain lines contain it, and as JSON lines do."""
    yield from text.splitlines()[:1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]


def _blank_lines(path: Path, told: Callable[[str], bool]) -> int:
    blanked = 0
    for start, line in _lines(path):
        if told(line.decode("utf-8", "replace")):
            blanked += _blank(path, start, len(line))
    return blanked


def _blank_typed(path: Path, said: Collection[str]) -> int:
    """Blank the person's entries in the prompt history, and return how many. An entry is one or more lines
    that begin with a plus; the file does not say who typed it, so entries match by text."""
    meant = {text.strip() for text in said}
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
                _blank(path, at, len(typed))
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


def _blank(path: Path, start: int, length: int) -> int:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b" " * length)
    return 1


_CACHED = type(functools.lru_cache(lambda: None))


def _clear_bounded_caches() -> None:
    """Clear bounded caches, which may hold the person's texts. Unbounded caches hold values that are computed
    once."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("agent", "memory", "tools"):
            for value in list(vars(module).values()):
                if isinstance(value, _CACHED) and value.cache_parameters()["maxsize"] is not None:
                    value.cache_clear()
