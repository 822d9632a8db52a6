"""`hachi traces stats`: how often tools and models were called, how long they took, what they cost."""

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.surfaces.cli.options import Json, clean
from agent.surfaces.cli.session import Session, running, say
from agent.surfaces.cli.traces.options import InPlace, OfUser, Since, wanted
from agent.surfaces.cli.traces.options import since as read_since

if TYPE_CHECKING:
    from agent.tracing.stats import Price, Stats, Tally

USUAL = "7d"
"""How far back, unless somebody says: every trace is read whole."""


def _price(text: str) -> tuple[str, tuple[float, ...]]:
    number = r"(\d{1,6}(?:\.\d{1,6})?)"
    found = re.fullmatch(rf"(.+)={number}/{number}(?:/{number})?", clean(text).strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is no price such as gpt-5-mini=0.25/2 or gpt-5-mini=0.25/2/0.025")
    return found[1], tuple(float(part) for part in found.groups()[1:] if part is not None)


@running
async def stats(
    context: typer.Context,
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
    session: Session = context.obj
    from agent.tracing.stats import Price, stats_of

    prices = {model: Price(*amounts) for model, amounts in map(_price, price or ())}
    begin = since or read_since(USUAL)
    asked = wanted(user=user, place=place, since=begin, all=True)
    async with session.traces() as traces:
        found = await stats_of(traces, asked, datetime.now(UTC))
    if json:
        from agent.tracing.render.text import json_text

        print(json_text({"since": begin, **found.json(prices)}, indent=2))
        return
    _print(found, prices)
    for model in prices.keys() - found.models.keys():
        say(f"no call of {model!r} is recorded, so that its price was not needed")


def _print(found: "Stats", prices: "dict[str, Price]") -> None:
    from agent.tracing.render.text import one_line
    from agent.tracing.render.tree import aligned

    told = ", ".join(f"{number} {status}" for status, number in found.statuses.most_common())
    rows = [["TURNS", *_HEADS], [told or "all", *_cells(found.turns)]]
    rows += _part("AFTER TURNS", sorted(found.work.items()))
    rows += _part("TOOL", sorted(found.tools.items(), key=lambda pair: -pair[1].calls))
    for line in aligned([[one_line(row[0], 60), *row[1:]] for row in rows]):
        print(line)
    models = [["MODEL", *_HEADS, "IN", "CACHED", "OUT", "COST"]]
    for name, taken in sorted(found.models.items(), key=lambda pair: -pair[1].calls):
        usage = taken.usage
        cost = f"{prices[name].of(usage):.4f}" if name in prices else "?"
        counts = [f"{number:,}" for number in (usage.input, usage.cached, usage.output)]
        models.append([one_line(name, 60), *_cells(taken), *counts, cost])
    if len(models) > 1:
        print()
        for line in aligned(models):
            print(line)


_HEADS = ["CALLS", "ERRORS", "P50", "P95"]


def _part(title: str, taken: "list[tuple[str, Tally]]") -> list[list[str]]:
    if not taken:
        return []
    return [[""] * 5, [title, *_HEADS], *([name, *_cells(one)] for name, one in taken)]


def _cells(taken: "Tally") -> list[str]:
    from agent.tracing.render.text import duration

    told: dict[str, Any] = taken.json()
    return [f"{taken.calls:,}", f"{taken.errors:,}", duration(told["p50"]), duration(told["p95"])]
