"""`hachi doctor`: what is configured, what can be reached, and what is there."""

import asyncio
import os
import platform
import re
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import typer

from agent.errors import FAULTS
from agent.surfaces.cli.options import Json
from agent.surfaces.cli.output import plain, print_json
from agent.surfaces.cli.session import Session, in_one_line, running
from memory.errors import StoreUnavailable

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.settings import Settings

SECONDS = 10
"""What one look may take."""
OPENING = 30
"""Seconds for the database and the embedder together."""
PARTS = (
    "hachi",
    "openai-agents",
    "openai",
    "qdrant-edge-py",
    "qdrant-client",
    "sqlalchemy",
    "wordllama",
)


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    ok: bool | None
    """None where there was no reason, or no way, to look."""
    detail: str


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: str | None
    source: str
    """`environment` or `default`."""


@running
async def doctor(context: typer.Context, json: Json = False) -> None:
    """Say what is configured and whether it can be reached; exit 1 where something cannot."""
    session: Session = context.obj
    settings = session.settings()
    checks, counts = await _look(session, settings)
    checks.append(await _model_server(settings))
    well = all(check.ok is not False for check in checks)
    versions = _versions()
    if json:
        print_json(
            {
                "ok": well,
                "settings": [asdict(setting) for setting in configured(settings)],
                "checks": [asdict(check) for check in checks],
                "versions": versions,
                "counts": counts,
            }
        )
    else:
        _print(settings, checks, versions, counts)
    if not well:
        raise typer.Exit(1)


async def _look(session: Session, settings: "Settings") -> tuple[list[Check], dict[str, int]]:
    unseen = Check("index", None, "not looked at")
    async with AsyncExitStack() as closing:
        try:
            async with asyncio.timeout(OPENING):
                pet = await closing.enter_async_context(session.companion())
        except StoreUnavailable as error:
            named = Check("embedder", None, f"{settings.chosen_embedder}, not looked at")
            return [Check("database", False, in_one_line(error)), named, unseen], {}
        except (*FAULTS, TimeoutError) as error:
            broken = Check("embedder", False, in_one_line(error))
            return [Check("database", True, "can be opened"), broken, unseen], {}

        checks = [
            Check("database", True, pet.components.database.where),
            *_traces(pet),
            await _check("embedder", lambda: _embed(pet)),
            await _check("index", lambda: _count(pet)),
        ]
        counted = await pet.services.statistics.totals()
        if checks[-1].ok:
            counted["waiting for the index"] = await pet.components.sync.due()
        return checks, counted


def _traces(pet: "Companion") -> list[Check]:
    """Where they are, if not in the same database; they have been opened by now."""
    if not pet.settings.traces:
        return [Check("traces", None, "off")]
    return (
        [] if pet.traces.where == pet.components.database.where else [Check("traces", True, pet.traces.where)]
    )


async def _check(name: str, look: Callable[[], Awaitable[str]]) -> Check:
    try:
        async with asyncio.timeout(SECONDS):
            return Check(name, True, await look())
    except TimeoutError:
        return Check(name, False, f"no answer within {SECONDS} s")
    except FAULTS as error:
        return Check(name, False, in_one_line(error))


async def _embed(pet: "Companion") -> str:
    await pet.components.embedder.embed(["Is anybody there?"])
    return f"{pet.components.embedder.name}, {pet.components.embedder.dimension} dimensions"


async def _count(pet: "Companion") -> str:
    where = _masked(pet.settings.qdrant_url) or "embedded"
    return f"{where}, {await pet.components.index.count()} points"


async def _model_server(settings: "Settings") -> Check:
    if settings.offline:
        return Check("model", None, "none is configured: the offline stand-in answers")
    return await _check("model", lambda: _models(settings))


async def _models(settings: "Settings") -> str:
    name = settings.chosen_model
    import openai

    from agent.models.failures import model_error

    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else "none"
    async with openai.AsyncOpenAI(api_key=key, base_url=settings.openai_base_url, max_retries=0) as client:
        try:
            known = {model.id for model in (await client.models.list(timeout=SECONDS / 2)).data}
        except openai.NotFoundError:
            return f"{name}; the server answers, but has no list of models"
        except openai.OpenAIError as error:
            raise model_error(error, settings) or error from error
    return name if name in known else f"{name}; the server answers, but does not list this model"


def configured(settings: "Settings") -> list[Setting]:
    """Every setting as it stands, secrets masked, and where it comes from."""
    found = []
    for field, about in type(settings).model_fields.items():
        alias: Any = about.validation_alias
        name = alias.choices[-1] if alias else f"HACHI_{field.upper()}"
        given = any(key.upper() == name and value for key, value in os.environ.items())
        value = getattr(settings, field)
        text = None if value is None else _masked(str(value))
        found.append(Setting(name, text, "environment" if given else "default"))
    return found


def _masked(text: str | None) -> str | None:
    """Without the name and password in an address; a SecretStr masks itself."""
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


def _print(
    settings: "Settings", checks: list[Check], versions: dict[str, str], counts: dict[str, int]
) -> None:
    print("Settings")
    for setting in configured(settings):
        shown = "unset" if setting.value is None else plain(setting.value)
        print(f"  {setting.name:<22} {shown} ({setting.source})")
    print("\nReached")
    for check in checks:
        print(f"{_MARKS[check.ok]} {check.name:<10} {plain(check.detail)}")
    print("\nVersions\n  " + ", ".join(f"{part} {number}" for part, number in versions.items()))
    if counts:
        print("\nKept")
        for what, count in counts.items():
            print(f"  {what:<22} {count}")
