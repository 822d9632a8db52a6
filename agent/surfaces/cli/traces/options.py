"""Options that several commands of `hachi traces` take."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from agent.surfaces.cli.options import clean, person, read_by
from agent.tracing.filters import read_place, read_seconds, read_since

if TYPE_CHECKING:
    from agent.tracing.store import TraceFilter

since = read_by(lambda text: read_since(text, datetime.now(UTC)))

_ID = "the first characters of it, or `last` for the newest turn."
TraceId = Annotated[str, typer.Argument(parser=clean, metavar="ID", help=f"Its id, {_ID}")]
TraceIds = Annotated[list[str], typer.Argument(parser=clean, metavar="ID...", help=f"Each an id, {_ID}")]
OfUser = Annotated[
    str | None,
    typer.Option("--user", "-u", parser=person, metavar="NAME", help="Only what this person said."),
]
InPlace = Annotated[
    str | None,
    typer.Option(
        "--place",
        parser=read_by(read_place),
        metavar="dm|NAME",
        help="Only in private (dm), or in a place such as acme and what is in it.",
    ),
]
WithTool = Annotated[
    str | None, typer.Option("--tool", parser=clean, metavar="NAME", help="Only where this tool was called.")
]
Failed = Annotated[bool, typer.Option("--error", help="Only what failed, or where a tool did.")]
WithText = Annotated[
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
    typer.Option(
        "--slower", parser=read_by(read_seconds), metavar="TIME", help="Only what took so long: 2s, 500ms."
    ),
]
WithJobs = Annotated[bool, typer.Option("--all", help="The work that was done after turns, too.")]


def trace_filter(
    user: str | None = None,
    place: str | None = None,
    tool: str | None = None,
    failed: bool = False,
    text: str | None = None,
    since: datetime | None = None,
    slower: float | None = None,
    with_jobs: bool = False,
) -> "TraceFilter":
    from agent.tracing.store import TraceFilter
    from agent.tracing.trace import TURN

    kinds = frozenset[str]() if with_jobs else frozenset({TURN})
    return TraceFilter(
        user=user,
        place=place,
        tool=tool,
        failed=failed,
        text=text,
        since=since,
        slower=slower,
        kinds=kinds,
    )
