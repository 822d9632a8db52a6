"""`hachi doctor`: what is configured, what can be reached, and what is there."""

import asyncio
import os
import platform
import re
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from agent.errors import FAULTS
from agent.surfaces.cli.output import Output, plain
from agent.surfaces.cli.session import Session, error_line, with_session
from memory.errors import MemoryFault, StoreUnavailable

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.settings import Settings

CHECK_TIMEOUT = 10
"""Seconds for one check."""
OPEN_TIMEOUT = 30
"""Seconds for the database and the embedder together."""
PARTS = ("hachi", "openai-agents", "openai", "qdrant-edge-py", "qdrant-client", "sqlalchemy", "wordllama")


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    ok: bool | None
    """None if it was not checked."""
    detail: str


@with_session
async def doctor(session: Session) -> Output:
    """Show what is configured and whether it can be reached. Exit 1 if something cannot, or if work was given
    up."""
    settings = session.settings()
    checks, counts = await _check_memory(session, settings)
    checks.append(await _check_model(settings))
    ok = all(check.ok is not False for check in checks)
    found = {
        "ok": ok,
        "settings": _configured(settings),
        "checks": [asdict(check) for check in checks],
        "versions": _versions(),
        "counts": counts,
    }
    return Output(found, lambda: _print(found), code=0 if ok else 1)


async def _check_memory(session: Session, settings: "Settings") -> tuple[list[Check], dict[str, int]]:
    unchecked = Check("index", None, "not looked at")
    async with AsyncExitStack() as closing:
        try:
            async with asyncio.timeout(OPEN_TIMEOUT):
                pet = await closing.enter_async_context(session.companion())
        except StoreUnavailable as error:
            embedder = Check("embedder", None, f"{settings.chosen_embedder}, not looked at")
            return [Check("database", False, error_line(error)), embedder, unchecked], {}
        except (*FAULTS, TimeoutError) as error:
            embedder = Check("embedder", False, error_line(error))
            return [Check("database", True, "can be opened"), embedder, unchecked], {}

        health, where = pet.services.health, _mask(settings.qdrant_url) or "embedded"
        index = await _check("index", health.indexed, lambda points: f"{where}, {points} points")
        checks = [
            Check("database", True, health.database_location),
            *_traces(pet),
            await _check("embedder", health.embed),
            index,
            await _check("work", lambda: _work(pet)),
        ]
        counts = await pet.services.statistics.totals()
        if index.ok:
            counts["waiting for the index"] = await health.waiting_for_index()
        return checks, counts


def _traces(pet: "Companion") -> list[Check]:
    """Traces are named only if they are off, or have a database of their own, which is open by now."""
    if not pet.settings.traces:
        return [Check("traces", None, "off")]
    location = pet.services.health.traces_location
    return [Check("traces", True, location)] if location else []


async def _work(pet: "Companion") -> str:
    """Raises MemoryFault with what to do where work was given up, or ends its process each time."""
    jobs = await pet.services.jobs.listed(pet.clock())
    given_up = sum(job.state == "given up" for job in jobs)
    crashing = sum(job.suspect for job in jobs)
    if given_up:
        raise MemoryFault(
            f"{given_up} given up; `hachi jobs list` says why, and `hachi jobs retry` runs it again"
        )
    if crashing:
        raise MemoryFault(
            f"{crashing} may be what ends the process; it is tried at most once an hour: `hachi jobs list`"
        )
    return f"{len(jobs)} waiting" if jobs else "nothing waits"


async def _check(name: str, look: Callable[[], Awaitable[Any]], told: Callable[[Any], str] = str) -> Check:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT):
            return Check(name, True, told(await look()))
    except TimeoutError:
        return Check(name, False, f"no answer within {CHECK_TIMEOUT} s")
    except FAULTS as error:
        return Check(name, False, error_line(error))


async def _check_model(settings: "Settings") -> Check:
    if settings.offline:
        return Check("model", None, "none is configured: the offline stand-in answers")
    return await _check("model", lambda: _model(settings))


async def _model(settings: "Settings") -> str:
    name = settings.chosen_model
    import openai

    from agent.models.failures import model_error

    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else "none"
    async with openai.AsyncOpenAI(api_key=key, base_url=settings.openai_base_url, max_retries=0) as client:
        try:
            known = {model.id for model in (await client.models.list(timeout=CHECK_TIMEOUT / 2)).data}
        except openai.NotFoundError:
            return f"{name}; the server answers, but has no list of models"
        except openai.OpenAIError as error:
            raise model_error(error, settings) or error from error
    return name if name in known else f"{name}; the server answers, but does not list this model"


def _configured(settings: "Settings") -> list[dict[str, Any]]:
    """Return every setting, secrets masked, and whether it is from the environment or the default."""
    given = {name.upper() for name, value in os.environ.items() if value}
    found = []
    for field, info in type(settings).model_fields.items():
        alias: Any = info.validation_alias
        name = alias.choices[-1] if alias else f"HACHI_{field.upper()}"
        value = getattr(settings, field)
        text = None if value is None else _mask(str(value))
        found.append({"name": name, "value": text, "source": "environment" if name in given else "default"})
    return found


def _mask(text: str | None) -> str | None:
    """Hide the name and password in an address. A SecretStr masks itself."""
    return text and re.sub(r"//[^/@\s]*@", "//…@", text)


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for part in PARTS:
        try:
            found[part] = version(part)
        except PackageNotFoundError:
            found[part] = "not installed"
    return found


_MARKS = {True: "✓", False: "✗", None: "–"}


def _print(found: dict[str, Any]) -> None:
    print("Settings")
    for setting in found["settings"]:
        value = "unset" if setting["value"] is None else plain(setting["value"])
        print(f"  {setting['name']:<22} {value} ({setting['source']})")
    print("\nReached")
    for check in found["checks"]:
        print(f"{_MARKS[check['ok']]} {check['name']:<10} {plain(check['detail'])}")
    print("\nVersions\n  " + ", ".join(f"{part} {number}" for part, number in found["versions"].items()))
    if found["counts"]:
        print("\nKept")
        for name, count in found["counts"].items():
            print(f"  {name:<22} {count}")
