"""Check each part for `hachi doctor` separately, so that a failing check hides no other."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agent.errors import HachiError, SettingsError
from agent.surfaces.cli.operate.model_checks import call_model, mask, model_listed, second_model_listed
from agent.surfaces.cli.operate.servers import discord_access, slack_access
from agent.surfaces.cli.session import Companion, Session, error_line, now
from memory.errors import EmbedderUnavailable, MemoryFault, StoreUnavailable

if TYPE_CHECKING:
    from agent.settings import Settings
    from memory.sql.engine import Database

CHECK_TIMEOUT = 10
"""Seconds for one check."""
OPEN_TIMEOUT = 30
"""Seconds that opening the database may take."""
BUNDLED_DIMENSION, MESSAGE_BYTES = 256, 2_000
"""Dimension of the bundled embedder, and the fewest bytes that a message takes in the index."""
LEAST_FREE = 200_000_000
"""Bytes that should be free on the disk. With less, writes will soon fail."""
PURGE_LATE = timedelta(hours=1)
"""How long a purge may be overdue after the time to undo a forgetting. Hachi deletes what is due once a
minute."""
FILES_SHOWN = ("hachi.db", "hachi.db-wal", "hachi.log")
"""Files of the data folder whose size is shown."""


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    ok: bool | None
    """None if the check was not made."""
    detail: str


class Unchecked(Exception):
    """Raised with the reason why a part cannot be checked."""


@dataclass
class Checkup:
    """The checks, and the resources that they open. A check returns a line, or an empty text if it does not
    apply."""

    session: Session
    settings: "Settings"
    call: bool
    """Whether to call the model once."""
    counts: dict[str, int] = field(default_factory=dict)
    """The number of rows of each kind, once the database has been read."""
    _opened: AsyncExitStack = field(default_factory=AsyncExitStack)
    _database: "Database | None" = None
    _pet: Companion | None = None

    async def run(self) -> AsyncIterator[Check]:
        """Yield the result of each check that applies."""
        settings, online = self.settings, not self.settings.offline
        timeouts = {"database": OPEN_TIMEOUT, "fallback model": None, "call": None}
        others: dict[str, tuple[object, Callable[[Settings], Awaitable[str]]]] = {
            "slack": (settings.slack_bot_token or settings.slack_app_token, slack_access),
            "discord": (settings.discord_token, discord_access),
            "fallback model": (online and settings.fallback_model, second_model_listed),
            "call": (online and self.call, call_model),
        }
        checks: dict[str, Callable[[], Awaitable[str]]] = {
            "database": self._sound,
            "clients": self._clients,
            "work": self._work,
            "embedder": self._embedder,
            "index": self._index,
            "settings": self._settings,
            "disk": self._disk,
            "collector": self._collector,
            **{name: partial(ask, settings) for name, (used, ask) in others.items() if used},
        }
        async with self._opened:
            for name, check in checks.items():
                found = await _run(name, check, timeouts.get(name, CHECK_TIMEOUT))
                if found.detail:
                    yield found
            for found in await self._mcp_servers():
                yield found
            yield await _run("model", self._model, None)  # HACHI_MODEL_TIMEOUT limits this

    @property
    def _bundled(self) -> bool:
        """Return whether embedder and index run in this process. Then they need no check: the index is
        rebuilt from the database when the two differ."""
        return self.settings.chosen_embedder == "bundled" and not self.settings.qdrant_url

    async def _sound(self) -> str:
        self._database = database = await self._opened.enter_async_context(self.session.database())
        if damage := await database.damage():
            raise StoreUnavailable(f"{database.where} is damaged; restore a copy: {damage[0]}")
        from agent.services.statistics import Figures, StatisticsService
        from memory.sql.jobs.queue import JobQueue
        from memory.sql.memories.store import MemoryStore

        jobs, figures = JobQueue(database, now), Figures(database)
        self.counts |= await StatisticsService(database, MemoryStore(database), jobs, figures, now).totals()
        return f"{database.where}, sound"

    async def _clients(self) -> str:
        from agent.services.statistics import Figures
        from agent.types.client import OTHER_MEMORY

        totals = await Figures(self._database).totals(None) if self._database and self.counts else {}
        if turns := totals.get(OTHER_MEMORY):
            raise Unchecked(f"{turns} {OTHER_MEMORY}; Open WebUI: ENABLE_MEMORIES=false")
        return ""

    async def _work(self) -> str:
        """Count the jobs. Raises MemoryFault if a job was given up, crashes its process, or is late."""
        from agent.background.consolidation.budget import ConsolidationBudget
        from memory.sql.hidden import ended
        from memory.sql.jobs.job import SUSPECT
        from memory.sql.jobs.queue import JobQueue

        database = self._require_database()
        jobs = await JobQueue(database, now).listed()
        failed = sum(job.state == "given up" for job in jobs)
        crashing = sum(job.crashes >= SUSPECT and job.state != "running" for job in jobs)
        late = len(await ended(database, now() - PURGE_LATE))
        for count, advice in (
            (failed, "given up; `hachi jobs list` says why, and `hachi jobs retry` runs it again"),
            (crashing, "may be what ends the process; it is tried at most once an hour: `hachi jobs list`"),
            (
                late,
                "things that were forgotten are not deleted, though nobody can bring them back any more; "
                "`hachi purge` deletes them or says why not",
            ),
        ):
            if count:
                raise MemoryFault(f"{count} {advice}")
        budget = ConsolidationBudget(database, now, self.settings.consolidate_per_day)
        pending, counted = await budget.waiting(), f"{len(jobs)} waiting" if jobs else "nothing waits"
        if not pending.until:
            return counted
        until = f"until {pending.until:%Y-%m-%d %H:%M} UTC at the latest"
        return (
            f"{counted}, {pending.jobs} of them for the next model calls, {until} (HACHI_CONSOLIDATE_PER_DAY)"
        )

    async def _embedder(self) -> str:
        if self._bundled:
            return "bundled"
        try:
            self._pet = await self._opened.enter_async_context(self.session.companion())
        except EmbedderUnavailable:
            raise
        except HachiError:
            raise Unchecked("not looked at") from None  # another check reports what is wrong
        return await self._pet.admin.health.embed()

    async def _index(self) -> str:
        """Count the entries. Raises MemoryFault if a person has more messages than fit into the index."""
        if self._bundled:
            memory, messages = self.settings.index_memory * 1_000_000, self.counts.get("messages", 0)
            database = self._require_database()
            if messages * MESSAGE_BYTES > memory:
                from memory.index.engine import room_for
                from memory.index.rows import Rows

                room = room_for(memory, BUNDLED_DIMENSION)
                _require_room(await Rows(database).with_more_messages(room))
            return "in this process"
        if self._pet is None:
            raise Unchecked("not looked at")
        health = self._pet.admin.health
        points, where = await health.indexed(), mask(self.settings.qdrant_url) or "in this process"
        self.counts["waiting for the index"] = pending = await health.waiting_for_index()
        _require_room(await health.too_big())
        return f"{where}, {points} points" + (f", {pending} rows wait for it" if pending else "")

    def _require_database(self) -> "Database":
        if self._database is None:
            raise Unchecked("not looked at")
        return self._database

    async def _settings(self) -> str:
        """Load the persona and the tools. Raises SettingsError if that fails or a setting is misspelt."""
        from agent.settings import misspelt

        if unread := misspelt():
            raise SettingsError("; ".join(unread))
        if self.settings.persona:
            from agent.turn.context.persona import read_persona

            read_persona(self.settings.persona)
        if not self.settings.tools:
            return ""
        from agent.turn.extensions import extensions, tools_named
        from tools.registry import TOOLS

        added = extensions(tools_named(self.settings.tools), None, (), None).tools
        return "tools: " + ", ".join(tool.name for tool in added if tool not in TOOLS)

    async def _mcp_servers(self) -> list[Check]:
        """Connect to all servers of the file at the same time, and say which tools each offers, and to
        whom."""
        from agent.turn.mcp_servers.file import read_mcp_file

        try:
            file = read_mcp_file(self.settings.mcp)
        except SettingsError as error:
            return [Check("mcp", False, error_line(error))]
        if not file.servers:
            return []
        from agent.turn.mcp_servers.connection import Connection

        servers = [Connection(name, server, file.admins) for name, server in file.servers.items()]
        return await asyncio.gather(*(_run(f"mcp {one.name}", one.described, None) for one in servers))

    async def _disk(self) -> str:
        """Measure the data folder. Raises MemoryFault if the disk is nearly full."""
        home, free = self.settings.home, shutil.disk_usage(self.settings.home).free
        files = [home / name for name in FILES_SHOWN if (home / name).exists()]
        parts = ", ".join(f"{file.name} {_megabytes(file.stat().st_size)}" for file in files)
        if free < LEAST_FREE:
            raise MemoryFault(f"only {_megabytes(free)} are free in {home}; make room ({parts})")
        return "; ".join(filter(None, (f"{_megabytes(free)} free", parts)))

    async def _collector(self) -> str:
        if not self.settings.otlp_endpoint:
            return ""
        url = urlsplit(self.settings.otlp_endpoint)
        host, port = url.hostname, url.port or (443 if url.scheme == "https" else 80)
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError as error:
            raise MemoryFault(f"{host}:{port} cannot be reached; check HACHI_OTLP_ENDPOINT") from error
        writer.close()
        return f"{host}:{port} takes connections"

    async def _model(self) -> str:
        if self.settings.offline:
            raise Unchecked("none is configured: the offline stand-in answers")
        return await model_listed(self.settings)


async def _run(name: str, check: Callable[[], Awaitable[str]], seconds: float | None) -> Check:
    try:
        async with asyncio.timeout(seconds):
            return Check(name, True, await check())
    except TimeoutError:
        return Check(name, False, f"no answer within {seconds} s")
    except Unchecked as reason:
        return Check(name, None, str(reason))
    except (HachiError, OSError) as error:
        return Check(name, False, error_line(error))


def _require_room(too_big: list[str]) -> None:
    if too_big:
        raise MemoryFault(
            f"searches of {', '.join(too_big[:3])} leave out what is oldest: raise HACHI_INDEX_MEMORY or set "
            "QDRANT_URL"
        )


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:,.1f} MB"
