"""Templates to bytes. Whatever is put into a template goes through `visible`, then is escaped."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

from fastapi import Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from agent.surfaces.web.asked import to
from agent.surfaces.web.visible import visible
from memory.audience import Place

SAID = {
    "ok": "ok",
    "tool_error": "tool failed",
    "malformed": "malformed",
    "error": "failed",
    "running": "running",
    "killed": "killed",
}
"""Every status in words."""


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("agent.surfaces.web"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"lasted": lasted, "moment": moment, "clock": clock, "iso": iso, "place": place}
    made.globals |= {"said": SAID, "to": to}
    return made


def _shown(value: Any) -> Any:
    if isinstance(value, Markup):
        return value
    return "" if value is None else visible(str(value))


def render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**values)


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    given: Mapping[str, Any] = {"leaving": getattr(request.state, "guarded", False), **values}
    return HTMLResponse(render(template, **given), status)


def lasted(seconds: float | None) -> str:
    """Three figures, in a unit that a person would choose."""
    if seconds is None:
        return "…"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size * 0.9995:
            number = seconds / size
            if unit == "s" and number >= 100:
                return f"{int(number // 60)} min {int(number % 60):02d} s"
            return f"{number:.{2 if number < 9.995 else 1 if number < 99.95 else 0}f} {unit}"
    return f"{seconds * 1e3:.2f} ms"


def moment(time: datetime) -> str:
    """By the clock of this place."""
    return time.astimezone().strftime("%d %b %H:%M:%S")


def clock(time: datetime) -> str:
    return time.astimezone().strftime("%A %d %B %Y, %H:%M:%S %Z")


def iso(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds")


def place(key: str) -> str:
    return str(Place.of_key(key))
