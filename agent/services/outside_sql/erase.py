"""Erases a person's data outside the database: traces, lines in files, and caches of this process."""

import asyncio
import functools
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.models.choice.registry import asked_elsewhere
from agent.services.outside_sql.log_lines import blank_lines_of, blank_typed
from agent.settings import Settings
from agent.tracing.store.filters import TraceFilter
from memory.errors import StoreUnavailable
from memory.forgetting.erasure_rows import ErasureProgress

if TYPE_CHECKING:
    from agent.wiring.components import Components


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
        self._clear_caches(rows)

    async def rewrite(self) -> None:
        await self.parts.traces.database.vacuum()

    def out_of_reach(self) -> Sequence[str]:
        """List, for the receipt, where else the person's data may remain."""
        return out_of_reach(self.parts.settings)

    def _clear_caches(self, found: ErasureProgress) -> None:
        self.parts.transcript.clear_caches()
        self.parts.store.forget_aliases()
        self.parts.figures.forget(found.user)
        _clear_bounded_caches()
        if clear := getattr(self.parts.embedder, "clear", None):
            clear()


def out_of_reach(settings: Settings) -> tuple[str, ...]:
    """List where a person's data may remain, beyond Hachi's reach, with these settings."""
    named = {
        "backups and exports that you made: erase again after you have restored one": True,
        "what the model's provider keeps of the calls that were made": asked_elsewhere(settings),
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
