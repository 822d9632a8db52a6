"""`hachi traces stats`: how often tools and models were called, how long they took, what they cost."""

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from agent.surfaces.cli.options import Json, read_by
from agent.surfaces.cli.output import say
from agent.surfaces.cli.session import with_traces
from agent.surfaces.cli.traces.options import InPlace, OfUser, Since, trace_filter
from agent.surfaces.cli.traces.options import since as read_since

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.tracing.stats import Price, Stats, Tally
    from agent.tracing.store import Traces

DEFAULT_SINCE = "7d"
"""Every trace is read whole, so not all of them."""
HEADINGS = ["CALLS", "ERRORS", "P50", "P95"]


def _price(text: str) -> tuple[str, tuple[float, ...]]:
    number = r"(\d{1,6}(?:\.\d{1,6})?)"
    found = re.fullmatch(rf"(.+)={number}/{number}(?:/{number})?", text)
    if found is None:
        raise ValueError(f"{text!r} is no price such as gpt-5-mini=0.25/2 or gpt-5-mini=0.25/2/0.025")
    return found[1], tuple(float(part) for part in found.groups()[1:] if part is not None)


@with_traces
async def stats(
    traces: "Traces",
    user: OfUser = None,
    place: InPlace = None,
    since: Since = None,
    price: Annotated[
        list[str] | None,
        typer.Option(
            "--price",
            metavar="MODEL=IN/OUT[/CACHED]",
            help="What a million tokens cost, for the cost; may be given several times.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Count turns, tool calls and model calls of the last 7 days, or since then; those after turns too."""
    from agent.tracing.render.text import json_text
    from agent.tracing.stats import Price, stats_of

    prices = {model: Price(*amounts) for model, amounts in map(read_by(_price), price or ())}
    begin = since or read_since(DEFAULT_SINCE)
    wanted = trace_filter(user=user, place=place, since=begin, with_jobs=True)
    found = await stats_of(traces, wanted, datetime.now(UTC))
    if json:
        print(json_text({"since": begin, **found.json(prices)}, indent=2))
        return
    _print(found, prices)
    for model in prices.keys() - found.models.keys():
        say(f"no call of {model!r} is recorded, so that its price was not needed")


def _print(found: "Stats", prices: "dict[str, Price]") -> None:
    from agent.tracing.stats import busiest

    statuses = ", ".join(f"{number} {status}" for status, number in found.statuses.most_common())
    rows = [["TURNS", *HEADINGS], [statuses or "all", *_cells(found.turns)]]
    rows += _section("AFTER TURNS", sorted(found.work.items()))
    rows += _section("TOOL", busiest(found.tools))
    _print_aligned(rows)
    models = [["MODEL", *HEADINGS, "IN", "CACHED", "OUT", "COST"]]
    for name, tally in busiest(found.models):
        usage = tally.usage
        cost = f"{prices[name].of(usage):.4f}" if name in prices else "?"
        counts = [f"{number:,}" for number in (usage.input, usage.cached, usage.output)]
        models.append([name, *_cells(tally), *counts, cost])
    if len(models) > 1:
        print()
        _print_aligned(models)


def _section(title: str, tallies: "Iterable[tuple[str, Tally]]") -> list[list[str]]:
    rows = [[name, *_cells(tally)] for name, tally in tallies]
    return [[""] * 5, [title, *HEADINGS], *rows] if rows else []


def _cells(tally: "Tally") -> list[str]:
    from agent.tracing.render.text import duration
    from agent.tracing.stats import percentile

    times = [duration(percentile(tally.seconds, percent)) for percent in (50, 95)]
    return [f"{tally.calls:,}", f"{tally.errors:,}", *times]


def _print_aligned(rows: list[list[str]]) -> None:
    from agent.tracing.render.text import one_line
    from agent.tracing.render.tree import aligned

    for line in aligned([[one_line(row[0], 60), *row[1:]] for row in rows]):
        print(line)
