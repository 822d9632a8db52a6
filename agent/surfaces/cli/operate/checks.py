"""What `hachi doctor` checks. Each part is checked by itself, so that one that fails hides no other."""

import asyncio
import re
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agent.errors import HachiError, SettingsError
from agent.surfaces.cli.operate.servers import extra
from agent.surfaces.cli.session import Session, error_line, now
from memory.errors import EmbedderUnavailable, MemoryFault, StoreUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from agent.companion import Companion
    from agent.settings import Settings
    from memory.sql.engine import Database
    from memory.sql.jobs.queue import JobQueue

CHECK_TIMEOUT = 10
"""Seconds for one check."""
OPEN_TIMEOUT = 30
"""Seconds for opening the database."""
BUNDLED_DIMENSION, MESSAGE_BYTES = 256, 2_000
"""Of the bundled embedder, and what a message takes in the index at least."""
LEAST_FREE = 200_000_000
"""Bytes. With less room on the disk, something is about to fail."""
PURGE_LATE = timedelta(hours=1)
"""After the time to undo a forgetting. A process of Hachi deletes what is due once a minute."""
FILES_SHOWN = ("hachi.db", "hachi.db-wal", "index", "hachi.log")
"""What in the data folder is shown with its size."""


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    ok: bool | None
    """None if it was not checked."""
    detail: str


async def check_everything(
    session: Session, settings: "Settings", counts: dict[str, int], *, call: bool = False
) -> AsyncIterator[Check]:
    """Yield the checks, with a `call` of the model, and fill in the number of rows of each kind if the
    database can be read."""
    from agent.settings import misspelt

    async for check in _stored(session, settings, counts):
        yield check
    async for check in _searched(session, settings, counts):
        yield check
    if unread := misspelt():
        yield Check("settings", False, "; ".join(unread))
    for wanted, name, look in (
        (settings.persona, "persona", _persona),
        (settings.tools, "tools", _tools),
        (True, "disk", _disk),
        (settings.otlp_endpoint, "collector", _collector),
        (settings.slack_bot_token or settings.slack_app_token, "slack", slack_access),
        (settings.discord_token, "discord", _discord),
        (not settings.offline, "model", _model),
        (not settings.offline and settings.fallback_model, "fallback model", _fallback),
        (not settings.offline and call, "call", call_model),
    ):
        if wanted:
            timed = look in (_model, _fallback, call_model)
            longest = None if timed else CHECK_TIMEOUT  # HACHI_MODEL_TIMEOUT ends these
            yield await _check(name, lambda look=look: look(settings), longest)  # type: ignore[misc]
    async for check in _mcp_servers(settings):
        yield check
    if settings.offline:
        yield Check("model", None, "none is configured: the offline stand-in answers")


async def _check(name: str, look: Callable[[], Awaitable[str]], within: float | None = 0) -> Check:
    longest = CHECK_TIMEOUT if within == 0 else within
    try:
        async with asyncio.timeout(longest):
            return Check(name, True, await look())
    except TimeoutError:
        return Check(name, False, f"no answer within {longest} s")
    except (HachiError, OSError) as error:
        return Check(name, False, error_line(error))


async def _stored(session: Session, settings: "Settings", counts: dict[str, int]) -> AsyncIterator[Check]:
    """Check the databases and the work in them, without loading what searches."""
    bundled = settings.chosen_embedder == "bundled" and not settings.qdrant_url
    async with AsyncExitStack() as closing:
        try:
            async with asyncio.timeout(OPEN_TIMEOUT):
                database = await closing.enter_async_context(session.database())
        except (HachiError, TimeoutError) as error:
            yield Check("database", False, error_line(error) or f"not open within {OPEN_TIMEOUT} s")
            yield Check("work", None, "not looked at")
            if bundled:
                yield Check("index", None, "not looked at")
            return
        from agent.services.statistics import Figures, StatisticsService
        from agent.types.client import OTHER_MEMORY
        from memory.sql.jobs.queue import JobQueue
        from memory.sql.memories.store import MemoryStore

        jobs = JobQueue(database, now)
        statistics = StatisticsService(database, MemoryStore(database), jobs, Figures(database), now)

        async def sound() -> str:
            if damage := await database.damage():
                raise StoreUnavailable(f"{database.where} is damaged; restore a copy: {damage[0]}")
            counts.update(await statistics.totals())
            return f"{database.where}, sound"

        yield await _check("database", sound)
        if counts and (turns := (await statistics.figures.totals(None))[OTHER_MEMORY]):
            yield Check("clients", None, f"{turns} {OTHER_MEMORY}; Open WebUI: ENABLE_MEMORIES=false")
        if not settings.traces:
            yield Check("traces", None, "off")
        yield await _check("work", lambda: _work(settings, database, jobs))
        if bundled:
            messages = counts.get("messages", 0)
            yield await _check("index", lambda: _bundled_index(settings, database, messages))


async def _work(settings: "Settings", database: "Database", queue: "JobQueue") -> str:
    """Raises MemoryFault with what to do where work was given up, ends its process each time, or is late."""
    from agent.background.consolidation_budget import ConsolidationBudget
    from memory.sql.hidden import ended
    from memory.sql.jobs.job import SUSPECT

    jobs = await queue.listed()
    for count, advice in (
        (
            sum(job.state == "given up" for job in jobs),
            "given up; `hachi jobs list` says why, and `hachi jobs retry` runs it again",
        ),
        (
            sum(job.crashes >= SUSPECT and job.state != "running" for job in jobs),
            "may be what ends the process; it is tried at most once an hour: `hachi jobs list`",
        ),
        (
            len(await ended(database, now() - PURGE_LATE)),
            "things that were forgotten are not deleted, though nobody can bring them back any more; "
            "`hachi purge` deletes them or says why not",
        ),
    ):
        if count:
            raise MemoryFault(f"{count} {advice}")
    budget = ConsolidationBudget(database, now, settings.consolidate_per_day)
    pending, counted = await budget.waiting(), f"{len(jobs)} waiting" if jobs else "nothing waits"
    if not pending.until:
        return counted
    until = f"until {pending.until:%Y-%m-%d %H:%M} UTC at the latest"
    return f"{counted}, {pending.jobs} of them for the next model calls, {until} (HACHI_CONSOLIDATE_PER_DAY)"


async def _searched(session: Session, settings: "Settings", counts: dict[str, int]) -> AsyncIterator[Check]:
    """Try the embedder and the index where a server or a model is to be asked. The bundled ones are in this
    process, and made of the database whenever they do not fit it: they need no look."""
    if settings.chosen_embedder == "bundled" and not settings.qdrant_url:
        yield Check("embedder", True, "bundled")
        return
    async with AsyncExitStack() as closing:
        try:
            async with asyncio.timeout(OPEN_TIMEOUT):
                pet = await closing.enter_async_context(session.companion())
        except (HachiError, TimeoutError) as error:
            away = isinstance(error, EmbedderUnavailable)  # anything else is told by another check
            yield Check("embedder", False if away else None, error_line(error) if away else "not looked at")
            yield Check("index", None, "not looked at")
            return
        yield await _check("embedder", pet.admin.health.embed)
        yield await _check("index", lambda: _index(pet, counts))


async def _index(pet: "Companion", counts: dict[str, int]) -> str:
    """Raises MemoryFault where somebody has more than the index in this process may hold."""
    health = pet.admin.health
    points, where = await health.indexed(), mask(pet.settings.qdrant_url) or "in this process"
    counts["waiting for the index"] = pending = await health.waiting_for_index()
    _require_room(await health.too_big())
    return f"{where}, {points} points" + (f", {pending} rows wait for it" if pending else "")


async def _bundled_index(settings: "Settings", database: "Database", messages: int) -> str:
    """Raises MemoryFault like `_index`, without loading what searches where all messages have room."""
    memory = settings.index_memory * 1_000_000
    if messages * MESSAGE_BYTES > memory:
        from memory.index.engine import room_for
        from memory.index.rows import Rows

        _require_room(await Rows(database).with_more_messages(room_for(memory, BUNDLED_DIMENSION)))
    return "in this process"


def _require_room(too_big: list[str]) -> None:
    if too_big:
        raise MemoryFault(
            f"searches of {', '.join(too_big[:3])} leave out what is oldest: raise HACHI_INDEX_MEMORY or set "
            "QDRANT_URL"
        )


async def _persona(settings: "Settings") -> str:
    from agent.turn.context.persona import read_persona

    return f"{settings.persona}, {len(read_persona(settings.persona))} characters"


async def _tools(settings: "Settings") -> str:
    from agent.turn.extensions import extensions, tools_named
    from tools.registry import TOOLS
    from tools.threads import MOST

    own = extensions(tools_named(settings.tools), None, (), None).tools
    names = ", ".join(tool.name for tool in own if tool not in TOOLS)
    return f"{names} beside Hachi's own; at most {MOST} sync calls at once"


async def _mcp_servers(settings: "Settings") -> AsyncIterator[Check]:
    """Connect to each server of the file, all at once, and say which tools it offers to whom."""
    from agent.turn.mcp_servers.file import read_mcp_file

    try:
        file = read_mcp_file(settings.mcp)
    except SettingsError as error:
        yield Check("mcp", False, error_line(error))
        return
    if not file.servers:
        return
    from agent.turn.mcp_servers.connection import Connection

    servers = [Connection(name, server, file.admins) for name, server in file.servers.items()]
    checks = [_check(f"mcp {one.name}", one.described, None) for one in servers]
    for check in await asyncio.gather(*checks):
        yield check


async def _disk(settings: "Settings") -> str:
    """Raises MemoryFault where little room is left."""
    home, free = settings.home, shutil.disk_usage(settings.home).free
    sizes = [(name, _size(home / name)) for name in FILES_SHOWN]
    parts = ", ".join(f"{name} {_megabytes(size)}" for name, size in sizes if size)
    if free < LEAST_FREE:
        raise MemoryFault(f"only {_megabytes(free)} are free in {home}; make room ({parts})")
    return "; ".join(filter(None, (f"{_megabytes(free)} free", parts)))


def mask(text: str | None) -> str | None:
    """Hide the name and password in an address, and its query. A SecretStr masks itself."""
    text = text and re.sub(r"(?<=://)[^\s@?]*@", "…@", text)
    return text and re.sub(r"(://[^\s?]*\?)\S+", r"\1…", text)


def _size(path: "Path") -> int:
    """The bytes that it takes on the disk; 0 if it is not there."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(512 * file.stat().st_blocks for file in files if file.is_file())


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:,.1f} MB"


async def _collector(settings: "Settings") -> str:
    url = urlsplit(str(settings.otlp_endpoint))
    host, port = url.hostname, url.port or (443 if url.scheme == "https" else 80)
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        raise MemoryFault(f"{host}:{port} cannot be reached; check HACHI_OTLP_ENDPOINT") from error
    writer.close()
    return f"{host}:{port} takes connections"


async def slack_access(settings: "Settings") -> str:
    with extra("slack", "slack-bolt", "slack_bolt", "slack_sdk", "aiohttp"):
        return str(await import_module("agent.surfaces.bots.slack.access").check_access(settings))


async def _discord(settings: "Settings") -> str:
    with extra("discord", "discord.py", "discord", "aiohttp"):
        return str(await import_module("agent.surfaces.bots.discord.access").check_access(settings))


async def _fallback(settings: "Settings") -> str:
    from agent.models.choice.fallback_settings import fallback_settings
    from agent.models.choice.providers import base_url_of

    second = fallback_settings(settings)
    assert second is not None
    where = mask(base_url_of(second)) or (f"{second.model_file.parent}" if second.model_file else "OpenAI")
    return f"{await _model(second)} at {where}"


async def _model(settings: "Settings") -> str:
    if file := settings.model_file:
        return f"{settings.chosen_model}; {file}, {_megabytes(_size(file))}, is served from the first call on"
    names = dict.fromkeys(filter(None, (settings.chosen_model, settings.consolidate_model)))
    import openai

    from agent.models.choice.providers import base_url_of
    from agent.models.failures import model_error
    from agent.models.wire.about import ask_about

    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else "none"
    details = [" and ".join(names)]
    async with openai.AsyncOpenAI(api_key=key, base_url=base_url_of(settings), max_retries=0) as client:
        try:
            for name in names:
                about = await ask_about(client, name, CHECK_TIMEOUT / 2)
                details += [str(about)] if str(about) and len(details) == 1 else []
                if not about.listed:
                    shown = ", ".join(about.models[:5]) or "none"
                    raise SettingsError(f"the server does not list {name}, but {shown}; check HACHI_MODEL")
        except openai.NotFoundError as error:
            if isinstance(error.body, str):
                raise SettingsError("there is no API at this URL; does OPENAI_BASE_URL lack /v1?") from error
            return f"{details[0]}; the server answers, but has no list of models"
        except openai.OpenAIError as error:
            raise model_error(error, settings) or error from error
    return "; ".join(details)


async def call_model(settings: "Settings") -> str:
    """Make one real call of the model."""
    import openai
    from agents.exceptions import AgentsException

    from agent.models.ask import ask
    from agent.models.choice.choose import choose_model
    from agent.models.failures import model_error

    chosen, began = choose_model(settings), time.monotonic()
    try:
        text = await ask(chosen, "doctor", "Greet me in one short sentence.")
    except (openai.OpenAIError, AgentsException) as error:
        raise model_error(error, settings) or MemoryFault(str(error)) from error
    finally:
        await chosen.close()
    took = f"{time.monotonic() - began:.1f} s"
    if not text.strip():
        raise MemoryFault(f"nothing in {took}")
    return f"answered in {took}"
