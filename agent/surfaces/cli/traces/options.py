"""Options that several commands of `hachi traces` take."""

import inspect
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

import typer

from agent.surfaces.cli.options import moment, read_by, user_option
from agent.surfaces.cli.session import Command, with_parameters
from agent.tracing.store.filters import TraceFilter, read_place, read_seconds
from agent.tracing.trace import TURN

_ID = "id, its first characters, or `last` for the newest turn."
TraceId = Annotated[str, typer.Argument(metavar="ID", help=f"An {_ID}")]
TraceIds = Annotated[list[str], typer.Argument(metavar="ID...", help=f"Each an {_ID}")]


def _filter(
    user: Annotated[str | None, user_option(help="Only what this person said.")] = None,
    place: Annotated[
        str | None,
        typer.Option(
            parser=read_by(read_place),
            metavar="dm|NAME",
            help="Only in private (dm), or in a place such as acme and the places in it.",
        ),
    ] = None,
    tool: Annotated[str | None, typer.Option(metavar="NAME", help="Only if this tool was called.")] = None,
    error: Annotated[bool, typer.Option("--error", help="Only if something failed.")] = False,
    text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only if the trace contains this text.")
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option(parser=moment, metavar="TIME", help="Only since: 2h, 1d, 2026-01-10."),
    ] = None,
    slower: Annotated[
        float | None,
        typer.Option(
            parser=read_by(read_seconds), metavar="TIME", help="Only if the turn took longer: 2s, 500ms."
        ),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Background jobs too.")] = False,
) -> TraceFilter:
    kinds = frozenset[str]() if all else frozenset({TURN})
    return TraceFilter(user, place, tool, error, text, since, slower, kinds)


def filtered(*left_out: str) -> Callable[[Command], Command]:
    """Add the options of a trace filter to a command, except `left_out`. The command's second argument is the
    filter."""
    offered = dict(inspect.signature(_filter).parameters)
    for name in left_out:
        del offered[name]

    def decorate(command: Command) -> Command:
        def run(traces: Any, **options: Any) -> Any:
            given = {name: options.pop(name) for name in offered}
            return command(traces, _filter(**given), **options)

        traces, _, *others = inspect.signature(command).parameters.values()
        options = sorted([*offered.values(), *others], key=lambda one: one.default is not one.empty)
        found: Command = with_parameters(run, command, [traces, *options])
        return found

    return decorate
