"""`hachi doctor`: show faults, settings, versions and counts."""

import platform
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.surfaces.cli.operate.checks import Checkup
from agent.surfaces.cli.operate.model_checks import mask
from agent.surfaces.cli.output import Output, plain
from agent.surfaces.cli.session import Session, with_session

if TYPE_CHECKING:
    from agent.settings import Settings

PARTS = ("openai-agents", "openai", "qdrant-client", "sqlalchemy", "wordllama")


@with_session
async def doctor(
    session: Session,
    *,
    all: Annotated[bool, typer.Option("--all", help="Show every setting.")] = False,
    call: Annotated[bool, typer.Option("--call", help="Call the model once, too.")] = False,
) -> Output:
    """Show faults, and settings that differ from the defaults.

    Exit 1 if there is a fault.
    """
    settings = session.settings()
    checkup = Checkup(session, settings, call)
    checks = [check async for check in checkup.run()]
    ok = not any(check.ok is False for check in checks)
    found = {
        "ok": ok,
        "settings": _configured(settings),
        "checks": [asdict(check) for check in checks],
        "versions": _versions(),
        "counts": checkup.counts,
    }
    return Output(found, lambda: _print(found, every_setting=all), code=0 if ok else 1)


def _configured(settings: "Settings") -> list[dict[str, Any]]:
    """Return every setting, with secrets masked, and its source: the environment, a file, or the default."""
    from agent.settings import sources, variable_of

    found, read = [], sources()
    for field in type(settings).model_fields:
        name = variable_of(field)
        value = getattr(settings, field)
        value = ", ".join(sorted(value)) if isinstance(value, frozenset) else value
        text = None if value in (None, "") else mask(str(value))
        found.append({"name": name, "value": text, "source": read.get(name, "default")})
    return found


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    from agent import __version__

    found = {"python": platform.python_version(), "hachi": __version__}
    for part in PARTS:
        try:
            found[part] = version(part)
        except PackageNotFoundError:
            found[part] = "not installed"
    return found


_MARKS = {True: "✓", False: "✗", None: "–"}


def _print(found: dict[str, Any], *, every_setting: bool) -> None:
    wrong = [check for check in found["checks"] if check["ok"] is False]
    for title, checks in (
        ("Wrong" if wrong else "Nothing is wrong", wrong),
        ("Checked", [check for check in found["checks"] if check not in wrong]),
    ):
        print(title)
        for check in checks:
            print(f"{_MARKS[check['ok']]} {check['name']:<10} {plain(check['detail'])}")
        print()
    print("Settings" if every_setting else "Settings that differ from the defaults (--all shows every one)")
    for setting in found["settings"]:
        if every_setting or setting["source"] != "default":
            value = "unset" if setting["value"] is None else plain(setting["value"])
            print(f"  {setting['name']:<25} {value} ({plain(setting['source'])})")
    print("\nVersions\n  " + ", ".join(f"{part} {number}" for part, number in found["versions"].items()))
    if found["counts"]:
        print("\nKept")
        for name, count in found["counts"].items():
            print(f"  {name:<22} {count}")
