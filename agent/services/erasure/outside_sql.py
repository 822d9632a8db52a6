"""Erases a person's data outside the database: traces, lines in files, and caches of this process."""

import asyncio
import functools
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.services.erasure.lines import blank_lines_of, blank_typed
from agent.services.statistics import Figures
from agent.tracing.recorder import Recorder
from agent.tracing.store import TraceFilter, Traces
from agent.turn.jobs import read_store_memories
from memory.erasure.receipt import ErasureProgress, OutsideStep
from memory.errors import StoreUnavailable
from memory.facts.candidate import CandidateFact
from memory.facts.similar import SimilarFacts
from memory.index.embedders import Embedder
from memory.sql.jobs import Job
from memory.sql.memories import MemoryStore
from memory.sql.messages import Transcript


@dataclass(frozen=True)
class ErasureOutsideSql:
    home: Path
    traces: Traces
    recorder: Recorder
    transcript: Transcript
    store: MemoryStore
    embedder: Embedder
    similar: SimilarFacts
    figures: Figures
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

        return traces, self._lines, self._caches

    async def _lines(self, progress: ErasureProgress) -> Mapping[str, int]:
        texts, ids = frozenset(progress.texts), frozenset(progress.index_ids)
        logged = await asyncio.to_thread(blank_lines_of, self.home, progress.user, texts, ids)
        typed = await asyncio.to_thread(blank_typed, self.home, frozenset(progress.messages))
        return {"log lines": logged, "typed lines": typed}

    async def _caches(self, progress: ErasureProgress) -> Mapping[str, int]:
        self.transcript.forget_known()
        self.store.forget_aliases()
        self.figures.forget(progress.user)
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


_CACHED = type(functools.lru_cache(lambda: None))


def _clear_bounded_caches() -> None:
    """Clear bounded caches, which may hold the person's texts. Unbounded caches hold values that are computed
    once."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("agent", "memory", "tools"):
            for value in list(vars(module).values()):
                if isinstance(value, _CACHED) and value.cache_parameters()["maxsize"] is not None:
                    value.cache_clear()
