"""Erases a person's data outside the database: traces, lines in files, and caches of this process."""

import asyncio
import functools
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.services.erasure.lines import blank_lines_of, blank_typed
from agent.services.erasure.search import FileSearch
from agent.services.statistics import Figures
from agent.settings import Settings
from agent.tracing.filters import TraceFilter
from agent.tracing.recorder import Recorder
from agent.tracing.store import removal
from agent.tracing.store.traces import Traces
from memory.erasure.person.receipt import ErasureProgress, Remainder
from memory.errors import StoreUnavailable
from memory.index.embedders import Embedder
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
    figures: Figures
    file_search: FileSearch
    finish_forgettings: Callable[[str, Collection[str]], Awaitable[None]]
    beyond: Sequence[str]
    """What else may hold the person's data, for the receipt."""

    async def files(self, progress: ErasureProgress) -> Mapping[str, int]:
        """Blank the lines of the log, of the decisions and of the prompt history; and empty the traces that
        the person's forgettings withhold, while their jobs tell which."""
        await self.finish_forgettings(progress.user, progress.places)
        texts, ids = frozenset(progress.texts), frozenset(progress.index_ids)
        logged = await asyncio.to_thread(blank_lines_of, self.home, progress.user, texts, ids)
        typed = await asyncio.to_thread(blank_typed, self.home, frozenset(progress.messages))
        return {"log lines": logged, "typed lines": typed}

    async def rest(self, progress: ErasureProgress) -> Mapping[str, int]:
        """Delete the person's traces, those of the places where they spoke, and every other that holds what
        they said; and clear caches. Raises StoreUnavailable if the trace database cannot be reached, or if
        traces are written faster than they are deleted; the erasure must then be run again."""
        await self.recorder.forget(progress.user, progress.places)
        erased = await removal.erase(self.traces.database, progress.user, progress.places)
        erased += await removal.erase_holding(self.traces.database, await self.file_search.texts(progress))
        if await self.traces.count(TraceFilter(user=progress.user, kinds=frozenset())):
            raise StoreUnavailable(f"traces of {progress.user} came in while it ran; run it again")
        self._clear_caches(progress)
        return {"traces": erased}

    async def search(self, progress: ErasureProgress) -> Sequence[Remainder]:
        return await self.file_search.search(progress)

    def out_of_reach(self) -> Sequence[str]:
        return self.beyond

    def _clear_caches(self, progress: ErasureProgress) -> None:
        self.transcript.forget_known()
        self.store.forget_aliases()
        self.figures.forget(progress.user)
        _clear_bounded_caches()
        if clear := getattr(self.embedder, "clear", None):
            clear()


def out_of_reach(settings: Settings) -> tuple[str, ...]:
    """Return what may hold a person's data where Hachi cannot search, with these settings."""
    named = {
        "backups and exports that you made: erase again after you have restored one": True,
        "what the model's provider keeps of the calls that were made": not settings.offline,
        "free pages and the log of PostgreSQL, until its VACUUM and its checkpoint": settings.database_url,
        "the files of the Qdrant server, until its optimiser rewrites them": settings.qdrant_url,
        "the collector of HACHI_OTLP_ENDPOINT, which got a copy of each trace": settings.otlp_endpoint,
        "the messages on Discord": settings.discord_token,
        "the messages on Slack": settings.slack_bot_token,
    }
    return tuple(text for text, applies in named.items() if applies)


_CACHED = type(functools.lru_cache(lambda: None))


def _clear_bounded_caches() -> None:
    """Clear bounded caches, which may hold the person's texts. Unbounded caches hold values that are computed
    once."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("agent", "memory", "tools"):
            for value in list(vars(module).values()):
                if isinstance(value, _CACHED) and value.cache_parameters()["maxsize"] is not None:
                    value.cache_clear()
