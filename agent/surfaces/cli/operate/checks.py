"""What `hachi doctor` checks. Each part is checked by itself, so that one that fails hides no other."""

import asyncio
import re
import shutil
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agent.errors import HachiError, SettingsError
from agent.surfaces.cli.operate.servers import extra
from agent.surfaces.cli.session import Session, error_line, now
from memory.errors import EmbedderUnavailable, MemoryFault, StoreUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from agent.companion import Companion
    from agent.services.statistics import Figures
    from agent.settings import Settings
    from memory.sql.engine import Database
    from memory.sql.jobs.queue import JobQueue


CHECK_TIMEOUT = 10
"""Seconds for one check."""
OPEN_TIMEOUT = 30
"""Seconds for opening the database."""
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
    session: Session, settings: "Settings", *, call: bool = False
) -> tuple[list[Check], dict[str, int]]:
    """Return the checks, with a `call` of the model, and the number of rows of each kind if the database can
    be read."""
    from agent.settings import misspelt

    counts: dict[str, int] = {}
    checks = [*await _check_database(session, counts), *await _check_search(session, settings, counts)]
    if unread := misspelt():
        checks.append(Check("settings", False, "; ".join(unread)))
    if settings.persona:
        checks.append(await _check("persona", lambda: _persona(settings)))
    if settings.tools:
        checks.append(await _check("tools", lambda: _tools(settings)))
    checks.append(await _check("disk", lambda: _disk(settings.home)))
    if settings.otlp_endpoint:
        checks.append(await _check("collector", lambda: _collector(str(settings.otlp_endpoint))))
    models = await _check_models(settings)
    if call and not settings.offline:
        models.append(await check_call(settings))
    return [*checks, *await _platforms(settings), *models], counts


async def _platforms(settings: "Settings") -> list[Check]:
    """Check the platforms for which a token is set: tokens, scopes and intents."""

    async def slack() -> str:
        with extra("slack", "slack-bolt", "slack_bolt", "slack_sdk", "aiohttp"):
            from agent.surfaces.bots.slack.access import check_access
        return await check_access(settings)

    async def discord() -> str:
        with extra("discord", "discord.py", "discord", "aiohttp"):
            from agent.surfaces.bots.discord.access import check_access
        return await check_access(settings)

    tokens = {
        "slack": settings.slack_bot_token or settings.slack_app_token,
        "discord": settings.discord_token,
    }
    looks = {"slack": slack, "discord": discord}
    return [await _check(name, looks[name]) for name, token in tokens.items() if token]


async def _check_database(session: Session, counts: dict[str, int]) -> list[Check]:
    """Look at the database and at the work in it, without loading what searches."""
    settings = session.settings()
    async with AsyncExitStack() as closing:
        try:
            async with asyncio.timeout(OPEN_TIMEOUT):
                database = await closing.enter_async_context(session.database())
        except (HachiError, TimeoutError) as error:
            reason = error_line(error) or f"not open within {OPEN_TIMEOUT} s"
            return [Check("database", False, reason), Check("work", None, "not looked at")]
        from agent.services.statistics import Figures, StatisticsService
        from memory.sql.jobs.queue import JobQueue
        from memory.sql.memories.store import MemoryStore

        jobs, figures = JobQueue(database, now), Figures(database)
        statistics = StatisticsService(database, MemoryStore(database), jobs, figures, now)

        async def sound() -> str:
            if damage := await database.damage():
                raise StoreUnavailable(f"{database.where} is damaged; restore a copy: {damage[0]}")
            counts.update(await statistics.totals())
            return f"{database.where}, sound"

        return [
            await _check("database", sound),
            *await _traces(settings),
            *await _nameless(figures),
            await _check("work", lambda: _work(settings, database, jobs)),
        ]


async def _traces(settings: "Settings") -> list[Check]:
    """Traces are named only if they are off, or have a database of their own."""
    if not settings.traces:
        return [Check("traces", None, "off")]
    if settings.traces_url is None:
        return []
    from memory.sql.engine import Database

    url = settings.traces_url.get_secret_value()
    async with AsyncExitStack() as closing:

        async def look() -> str:
            database = Database.lazily(url, settings.home, "HACHI_TRACES_URL")
            closing.push_async_callback(database.close)
            await database.revision()
            return database.where

        return [await _check("traces", look)]


async def _nameless(figures: "Figures") -> list[Check]:
    """Named only if services have asked for answers, and for nobody each time."""
    from agent.services.statistics import HOW_TO_NAME, NAMED, NAMELESS

    with suppress(StoreUnavailable):  # told by the check of the database
        counts = await figures.totals("")
        if counts[NAMELESS] and not counts[NAMED]:
            told = f"{counts[NAMELESS]} requests over HTTP, and none says who speaks: nothing is kept. "
            return [Check("people", None, told + HOW_TO_NAME)]
    return []


async def _work(settings: "Settings", database: "Database", queue: "JobQueue") -> str:
    """Raises MemoryFault with what to do where work was given up, ends its process each time, or is late."""
    from agent.background.consolidation_budget import ConsolidationBudget
    from memory.sql.hidden import ended
    from memory.sql.jobs.job import SUSPECT

    jobs = await queue.listed()
    given_up = sum(job.state == "given up" for job in jobs)
    crashing = sum(job.crashes >= SUSPECT and job.state != "running" for job in jobs)
    if given_up:
        raise MemoryFault(
            f"{given_up} given up; `hachi jobs list` says why, and `hachi jobs retry` runs it again"
        )
    if crashing:
        raise MemoryFault(
            f"{crashing} may be what ends the process; it is tried at most once an hour: `hachi jobs list`"
        )
    if late := await ended(database, now() - PURGE_LATE):
        raise MemoryFault(
            f"{len(late)} things that were forgotten are not deleted, though nobody can bring them back "
            "any more; `hachi purge` deletes them or says why not"
        )
    waiting = await ConsolidationBudget(
        database, now, settings.upkeep_per_hour, settings.upkeep_per_day
    ).waiting()
    told = f"{len(jobs)} waiting" if jobs else "nothing waits"
    if not waiting.until:
        return told
    until = f"until {waiting.until:%Y-%m-%d %H:%M} UTC at the latest"
    names = "HACHI_UPKEEP_PER_HOUR, HACHI_UPKEEP_PER_DAY"
    return f"{told}, {waiting.jobs} of them for the next model calls, {until} ({names})"


async def _check_search(session: Session, settings: "Settings", counts: dict[str, int]) -> list[Check]:
    """Try the embedder and the index where a server or a model is to be asked. The bundled ones are in this
    process, and made of the database whenever they do not fit it: they need no look."""
    if settings.chosen_embedder == "bundled" and not settings.qdrant_url:
        return [Check("embedder", True, "bundled"), Check("index", True, "embedded")]
    async with AsyncExitStack() as closing:
        try:
            async with asyncio.timeout(OPEN_TIMEOUT):
                pet = await closing.enter_async_context(session.companion())
        except EmbedderUnavailable as error:
            return [Check("embedder", False, error_line(error)), Check("index", None, "not looked at")]
        except (HachiError, TimeoutError):  # told by another check
            return [Check(name, None, "not looked at") for name in ("embedder", "index")]
        return [
            *await _advice(pet),
            await _check("embedder", pet.admin.health.embed),
            await _check("index", lambda: _index(pet, counts)),
        ]


async def _advice(pet: "Companion") -> list[Check]:
    """On the servers of the index. That they are away is said by another check."""
    with suppress(MemoryFault):
        return [Check("index", None, told) for told in await pet.admin.health.index_advice()]
    return []


async def _index(pet: "Companion", counts: dict[str, int]) -> str:
    health = pet.admin.health
    points, where = await health.indexed(), mask(pet.settings.qdrant_url) or "embedded"
    counts["waiting for the index"] = waiting = await health.waiting_for_index()
    return f"{where}, {points} points" + (f", {waiting} rows wait for it" if waiting else "")


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


async def _disk(home: "Path") -> str:
    """Raises MemoryFault where little room is left."""
    free = shutil.disk_usage(home).free
    sizes = {name: _size(home / name) for name in FILES_SHOWN}
    said = ", ".join(f"{name} {_megabytes(size)}" for name, size in sizes.items() if size)
    if free < LEAST_FREE:
        raise MemoryFault(f"only {_megabytes(free)} are free in {home}; make room ({said})")
    return "; ".join(filter(None, (f"{_megabytes(free)} free", said)))


def mask(text: str | None) -> str | None:
    """Hide the name and password in an address, and its query. A SecretStr masks itself."""
    return text and re.sub(r"(?<=://)(\S*@)?([^\s?]*)(\?\S*)?", _masked, text)


def _masked(address: re.Match[str]) -> str:
    login, where, query = address.groups()
    return f"{'…@' if login else ''}{where}{'?…' if query else ''}"


def _size(path: "Path") -> int:
    """The bytes that it takes on the disk; 0 if it is not there."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(512 * file.stat().st_blocks for file in files if file.is_file())


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:,.1f} MB"


async def _collector(endpoint: str) -> str:
    url = urlsplit(endpoint)
    where = f"{url.hostname}:{url.port or (443 if url.scheme == 'https' else 80)}"
    host, _, port = where.rpartition(":")
    try:
        _, writer = await asyncio.open_connection(host, int(port))
    except OSError as error:
        raise MemoryFault(f"{where} cannot be reached; check HACHI_OTLP_ENDPOINT") from error
    writer.close()
    return f"{where} takes connections"


async def _check(name: str, look: Callable[[], Awaitable[str]]) -> Check:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT):
            return Check(name, True, await look())
    except TimeoutError:
        return Check(name, False, f"no answer within {CHECK_TIMEOUT} s")
    except (HachiError, OSError) as error:
        return Check(name, False, error_line(error))


async def _check_models(settings: "Settings") -> list[Check]:
    if settings.offline:
        return [Check("model", None, "none is configured: the offline stand-in answers")]
    first = await _check("model", lambda: _model(settings))
    if settings.fallback_model is None:
        return [first]
    return [first, await _check("fallback model", lambda: _fallback(settings))]


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
    names = dict.fromkeys(filter(None, (settings.chosen_model, settings.upkeep_model)))
    import openai

    from agent.models.choice.providers import base_url_of
    from agent.models.failures import model_error
    from agent.models.wire.about import ask_about

    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else "none"
    said, told = " and ".join(names), ""
    async with openai.AsyncOpenAI(api_key=key, base_url=base_url_of(settings), max_retries=0) as client:
        try:
            for name in names:
                about = await ask_about(client, name, CHECK_TIMEOUT / 2)
                told = told or str(about)
                if not about.listed:
                    shown = ", ".join(about.models[:5]) or "none"
                    raise SettingsError(f"the server does not list {name}, but {shown}; check HACHI_MODEL")
        except openai.NotFoundError as error:
            if isinstance(error.body, str):
                raise SettingsError("there is no API at this URL; does OPENAI_BASE_URL lack /v1?") from error
            return f"{said}; the server answers, but has no list of models"
        except openai.OpenAIError as error:
            raise model_error(error, settings) or error from error
    return f"{said}; {told}" if told else said


async def check_call(settings: "Settings") -> Check:
    """Make one real call of the model."""
    import openai
    from agents.exceptions import AgentsException

    from agent.models.ask import ask
    from agent.models.choice.choose import choose_model
    from agent.models.failures import model_error

    try:
        chosen = choose_model(settings)
    except HachiError as error:
        return Check("call", False, error_line(error))
    began = time.monotonic()
    try:
        text = await ask(chosen, "doctor", "Greet me in one short sentence.")
    except (openai.OpenAIError, AgentsException) as error:
        return Check("call", False, error_line(model_error(error, settings) or error))
    finally:
        await chosen.close()
    took = f"{time.monotonic() - began:.1f} s"
    return Check("call", bool(text.strip()), f"answered in {took}" if text.strip() else f"nothing in {took}")
