"""What is kept of a person outside the record: the log, what was typed at the prompt, and what this process
has in mind.

The files are written over in place, letter for letter with blanks: other processes go on appending to them,
and a file that they rotate meanwhile is the same file under another name.
"""

import asyncio
import functools
import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.tracing.store import Wanted
from memory.case import Case
from memory.erasure.person import SHORTEST_SOUGHT
from memory.erasure.receipt import Beside, Gone, Scrub
from memory.errors import StoreUnavailable
from memory.sql.jobs import Work

if TYPE_CHECKING:
    from agent.archive import Archive
    from agent.tracing.recorder import Recorder

LOG = "hachi.log*"
TYPED = "chat_history"


def beside(
    archive: "Archive", places: Collection[str] = (), recorder: "Recorder | None" = None
) -> tuple[Beside, ...]:
    """What takes away the rest."""
    home = archive.settings.home

    async def traced(gone: Gone) -> Mapping[str, int]:
        """Raises StoreUnavailable where their database is away, or where they are written faster than they
        go: then the erasure is to be run again."""
        if recorder is not None:
            await recorder.forget(gone.user, places)
        erased = await archive.traces.erase(gone.user, places)
        if await archive.traces.count(Wanted(user=gone.user, kinds=frozenset())):
            raise StoreUnavailable(f"traces of {gone.user} came in while it ran; run it again")
        return {"traces": erased}

    async def logged(gone: Gone) -> Mapping[str, int]:
        told = _names_or_says(gone.user, gone.facts | gone.said)
        found = await asyncio.to_thread(
            lambda: sum(_blank_lines(path, told) for path in sorted(home.glob(LOG)))
        )
        return {"log lines": found}

    async def typed(gone: Gone) -> Mapping[str, int]:
        return {"typed lines": await asyncio.to_thread(_blank_typed, home / TYPED, gone.said)}

    async def kept_here(_: Gone) -> Mapping[str, int]:
        archive.transcript.forget_known()
        archive.store.forget_aliases()
        _forget_passed_by()
        if clear := getattr(archive.embedder, "clear", None):
            clear()
        return {}

    return traced, logged, typed, kept_here


def scrub_with(archive: "Archive") -> Scrub:
    """Work that waits to be done for others: without what they were shown of the person, and without what
    only repeats it."""

    def scrub(kind: str, user: str, payload: dict[str, Any], ids: Collection[str]) -> dict[str, Any] | None:
        if not any(hit["id"] in ids for hit in payload.get("recalled", ())):
            return None
        from agent.background.worker import from_stored

        drafts, origin = from_stored(Work("", kind, user, payload, 0))
        lost = replace(origin, recalled=tuple(hit for hit in origin.recalled if hit.id in ids))
        echoes = [bool(archive.likeness.echoed(Case(draft, lost, None, archive.clock()))) for draft in drafts]
        kept = [draft for draft, echo in zip(payload["drafts"], echoes, strict=True) if not echo]
        recalled = [hit for hit in payload["recalled"] if hit["id"] not in ids]
        return payload | {"drafts": kept, "recalled": recalled}

    return scrub


def _names_or_says(user: str, texts: Collection[str]) -> Callable[[str], bool]:
    """Whether a line of the log is the person's, names them, or tells what they said."""
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
    """As it is written in a line of text, and in one of JSON."""
    yield from text.splitlines()[:1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]


def _blank_lines(path: Path, told: Callable[[str], bool]) -> int:
    blanked = 0
    for start, line in _lines(path):
        if told(line.decode("utf-8", "replace")):
            blanked += _blank(path, start, len(line))
    return blanked


def _blank_typed(path: Path, said: Collection[str]) -> int:
    """Entries of the prompt's history that were said by the person. An entry is one or more lines that begin
    with a plus; the file does not say who typed it."""
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
    """Each line without its end, and where it begins."""
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


def _forget_passed_by() -> None:
    """Bounded caches hold what passed by, texts among it; unbounded ones what is made once."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("agent", "memory", "tools"):
            for value in list(vars(module).values()):
                if isinstance(value, _CACHED) and value.cache_parameters()["maxsize"] is not None:
                    value.cache_clear()
