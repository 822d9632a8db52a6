"""`hachi traces export`, `prune` and `stats`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from agent.surfaces.cli.options import DryRun, Yes, moment, read_by
from agent.surfaces.cli.output import Output, confirm, give_back, must_ask, print_table, say, write_output
from agent.surfaces.cli.session import with_traces
from agent.surfaces.cli.traces.options import TraceIds, filtered
from agent.tracing.filters import TraceFilter

if TYPE_CHECKING:
    from agent.tracing.store.traces import Traces

DEFAULT_SINCE = "7d"
"""Every trace is read whole, so not all of them."""
COLUMNS = ("what", "name", "calls", "errors", "p50", "p95", "in", "cached", "out", "cost")


@with_traces
async def export(
    traces: "Traces",
    ids: TraceIds,
    format: Annotated[Literal["json", "md", "html", "otlp"], typer.Option("--format")] = "json",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Stdout by default, or for -."),
    ] = None,
) -> None:
    """Write traces as one file: JSON, Markdown, HTML or OTLP/JSON.

    Their background jobs are in it.
    """
    from agent.tracing.render.export import exported

    found = [await traces.get_with_jobs(id, datetime.now(UTC)) for id in ids]
    what = f"{len(found)} {'trace is' if len(found) == 1 else 'traces are'}"
    write_output(output, exported(found, format), what)


@with_traces
async def prune(
    traces: "Traces",
    older: Annotated[
        datetime, typer.Option(parser=moment, metavar="TIME", help="Than this: 30d, 2w, 2026-01-10.")
    ],
    dry_run: DryRun = False,
    yes: Yes = False,
) -> Output:
    """Delete everybody's old traces. Without this they are deleted after HACHI_TRACE_DAYS."""
    from agent.tracing.render.text import count, when

    kept = TraceFilter(since=older, kinds=frozenset())
    old = await traces.count(TraceFilter(kinds=frozenset())) - await traces.count(kept)
    if old and not dry_run and must_ask(yes, "deleted"):
        print(f"{count(old, 'trace')} from before {when(older)}")
        confirm("Delete them for good?", "deleted")
    if not dry_run:
        old = await traces.prune(older)
        await give_back(traces.database)
    done = "would be deleted" if dry_run else "deleted"
    data = {"count": old, "dry_run": dry_run, "before": older}
    return Output(data, f"{count(old, 'trace')} {done}")


def _price(text: str) -> tuple[str, tuple[float, ...]]:
    number = r"(\d{1,6}(?:\.\d{1,6})?)"
    found = re.fullmatch(rf"(.+)={number}/{number}(?:/{number})?", text)
    if found is None:
        raise ValueError(f"{text!r} is no price such as gpt-5-mini=0.25/2 or gpt-5-mini=0.25/2/0.025")
    return found[1], tuple(float(part) for part in found.groups()[1:] if part is not None)


@with_traces
@filtered("all")
async def stats(
    traces: "Traces",
    wanted: TraceFilter,
    price: Annotated[
        list[str] | None,
        typer.Option(
            "--price",
            metavar="MODEL=IN/OUT[/CACHED]",
            help="The price of a million tokens. May be given several times.",
        ),
    ] = None,
) -> Output:
    """Count turns, background jobs, tool calls and model calls.

    Those of the last 7 days by default.
    """
    from agent.tracing.stats import Price, stats_of

    prices = {model: Price(*amounts) for model, amounts in map(read_by(_price), price or ())}
    begin = wanted.since or moment(DEFAULT_SINCE)
    found = await stats_of(traces, replace(wanted, since=begin, kinds=frozenset()), datetime.now(UTC))
    for model in prices.keys() - found.models.keys():
        say(f"no call of {model!r} is recorded, so that its price was not needed")
    data = {"since": begin, **found.json(prices)}
    return Output(data, lambda: print_table(COLUMNS, _rows(data)))


def _rows(data: Mapping[str, Any]) -> Iterator[list[str]]:
    statuses = ", ".join(f"{number} {status}" for status, number in data["turns"]["statuses"].items())
    yield ["turns", statuses, *_cells(data["turns"])]
    for what, part in {"after turns": "work", "tool": "tools", "model": "models"}.items():
        for name, counted in data[part].items():
            yield [what, name, *_cells(counted)]


def _cells(counted: Mapping[str, Any]) -> list[str]:
    from agent.tracing.render.text import duration

    tokens = [f"{counted[name]:,}" if name in counted else "" for name in ("input", "cached", "output")]
    cost = counted.get("cost", "")
    return [
        *(f"{counted[name]:,}" for name in ("calls", "errors")),
        *(duration(counted[name]) for name in ("p50", "p95")),
        *tokens,
        "?" if cost is None else cost if cost == "" else f"{cost:.4f}",
    ]
