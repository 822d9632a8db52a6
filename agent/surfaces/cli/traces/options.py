"""Which traces: what several commands of `hachi traces` take, and how it is read."""

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from agent.surfaces.cli.options import clean, moment, person
from memory.audience import Place

if TYPE_CHECKING:
    from agent.tracing.store import TraceFilter

_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def length(text: str) -> timedelta | None:
    """``90s``, ``2h``, ``1.5d``; None where it is none."""
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?) *(ms|s|m|min|h|d|w)", text.strip().lower())
    return float(found[1]) * _UNITS[found[2]] if found else None


def since(text: str) -> datetime:
    """A moment: so long ago, or a date and time."""
    ago = length(clean(text))
    try:
        return datetime.now(UTC) - ago if ago is not None else moment(text)
    except OverflowError as error:
        raise typer.BadParameter(f"{text!r} is too long ago") from error
    except typer.BadParameter as error:
        raise typer.BadParameter(
            f"{text!r} is no time such as 2h, 1d, 2w, 2026-01-10 or 2026-01-10T09:30"
        ) from error


def seconds(text: str) -> float:
    """``2s``, ``500ms``; a bare number is seconds."""
    if (found := length(text)) is None:
        found = length(f"{text.strip()}s")
    if found is None:
        raise typer.BadParameter(f"{text!r} is no length of time such as 2s or 500ms")
    return found.total_seconds()


def place_key(text: str) -> str:
    """As traces have it: empty in private."""
    place = Place.parse(clean(text))
    return "" if place.private else place.key


TraceId = Annotated[
    str,
    typer.Argument(
        parser=clean, metavar="ID", help="Its id, the first characters of it, or `last` for the newest turn."
    ),
]
TraceIds = Annotated[
    list[str],
    typer.Argument(
        parser=clean,
        metavar="ID...",
        help="Ids, the first characters of them, or `last` for the newest turn.",
    ),
]
OfUser = Annotated[
    str | None,
    typer.Option("--user", "-u", parser=person, metavar="NAME", help="Only what this person said."),
]
InPlace = Annotated[
    str | None,
    typer.Option(
        "--place",
        parser=place_key,
        metavar="dm|NAME",
        help="Only in private (dm), or in a place such as acme and what is in it.",
    ),
]
WithTool = Annotated[
    str | None, typer.Option("--tool", parser=clean, metavar="NAME", help="Only where this tool was called.")
]
Failed = Annotated[bool, typer.Option("--error", help="Only what failed, or where a tool did.")]
Text = Annotated[
    str | None,
    typer.Option(
        "--text", parser=clean, metavar="TEXT", help="Only where the beginning of what was said has this."
    ),
]
Since = Annotated[
    datetime | None,
    typer.Option("--since", parser=since, metavar="TIME", help="Only from then on: 2h, 1d, 2026-01-10."),
]
Slower = Annotated[
    float | None,
    typer.Option("--slower", parser=seconds, metavar="TIME", help="Only what took so long: 2s, 500ms."),
]
WithWork = Annotated[bool, typer.Option("--all", help="The work that was done after turns, too.")]


def wanted(
    user: str | None = None,
    place: str | None = None,
    tool: str | None = None,
    failed: bool = False,
    text: str | None = None,
    since: datetime | None = None,
    slower: float | None = None,
    all: bool = False,
) -> "TraceFilter":
    from agent.tracing.store import TraceFilter
    from agent.tracing.trace import TURN

    return TraceFilter(
        user=user,
        place=place,
        tool=tool,
        failed=failed,
        text=text,
        since=since,
        slower=slower,
        kinds=frozenset() if all else frozenset({TURN}),
    )
