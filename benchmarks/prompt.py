"""What does a prompt cost, and does it grow? One conversation of many turns, counted in tokens by section.

    python benchmarks/prompt.py [--turns N] [--plot FILE.svg] [--json]

A real companion in a temporary home; its two models are scripted. One answers, and on the way searches,
remembers, notes and closes tasks. One looks back and hands in ever more: a summary that grows to forty
sentences, facts, preferences, tasks. So the figures say what is sent, and nothing of how good it is. What the
person says is made up of building blocks: English, a tenth French, a tenth Hebrew, 1 to 25 sentences.
Each hundred turns has the same lengths in the same languages about other things, so hundreds can be compared.

Counted is what the model gets in the first call of a turn: the system message by its headings, the messages,
the tools as JSON; not the few tokens with which a provider frames each. The tokenizer is the one that comes
with wordllama, Llama 2's of 32,000 pieces; beside it stands the estimate of `agent/turn/budget.py`.

Bars. From 210 turns on: the 95th percentile of a prompt over the last hundred turns is at most 1.02 times
that over turns 11 to 110, and so is the longest without history and question after turn 110 to that until
then. Always: what is known of the person and the summary keep within their budgets; persona, rules and tools
are the same bytes in each turn; at most one upkeep call an exchange. From 210 turns on also: in the mean of
the last hundred turns at most half an upkeep call a turn, and half of the tokens that one call a turn took.
Exit 1 where missed.
"""

import argparse
import asyncio
import json
import math
import statistics
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import cache, lru_cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import pairwise, takewhile
from operator import eq
from pathlib import Path
from random import Random
from typing import Any

from prompt_plots import NAMES, SECTIONS, plot
from prompt_world import SAMPLES, START, WINDOW, LookingBack, Scripted, turn
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from agent import Companion, Settings
from agent.settings import tokens as estimate
from memory.audience import PRIVATE
from memory.index.embedders import bundled
from prompts import read, render

USER = "maya"
HEADED = ("person", "summary", "knowledge", "setting")
SAID = ("history", "question")
SHOWN = (1, 20, 100, 500, 1_000)
FIRST = 11
"""The first turn that is compared, when the history is full."""
UPKEEP = 3_021 / 2
"""Half of the tokens a turn that upkeep took when it was called after each exchange."""
SLACK = 1.02
"""What is said about other things is a little longer or shorter: one percent, as far as seen."""

# Counting.


@dataclass(frozen=True)
class Cost:
    """Of one turn, in tokens where nothing else is said."""

    turn: int
    tokens: Mapping[str, int]
    """By section; together the whole prompt."""
    estimated: int
    """The whole prompt, by the estimate of `agent/turn/budget.py`."""
    prefix: int
    """How much of the system message's beginning is the same as in the turn before."""
    fixed: str
    """Persona, rules and tools: a hash of their bytes."""
    filled: float
    """How much of its budget the person's section or the summary takes, whichever takes more."""
    calls: int
    """Of the model that answers."""
    upkeep_calls: int
    upkeep: int
    """The tokens that these were sent."""

    @property
    def whole(self) -> int:
        return sum(self.tokens.values())

    @property
    def standing(self) -> int:
        """Without what is said: history and question."""
        return sum(count for section, count in self.tokens.items() if section not in SAID)

    @property
    def system(self) -> int:
        return self.standing - self.tokens["tools"]


@cache
def _tokenizer() -> Any:
    return bundled._load().tokenizer


@lru_cache(maxsize=64)
def _ends(text: str) -> tuple[int, ...]:
    """Where each token ends, in characters."""
    return tuple(end for _, end in _tokenizer().encode(text, add_special_tokens=False).offsets)


def count(text: str) -> int:
    return len(_ends(text)) if text else 0


def split(system: str) -> dict[str, str]:
    """The system message by its headings. Nothing quoted can look like one, and joined it is whole again."""
    heads = {name: read(name).splitlines()[0] for name in HEADED}
    found = {name: system.find(f"\n\n{head}\n") for name, head in heads.items()}
    starts = [("rules", 0), *((name, at) for name, at in found.items() if at >= 0), ("", len(system))]
    return {name: system[at:end] for (name, at), (_, end) in pairwise(starts)}


def cost(n: int, answering: Scripted, looking_back: Scripted, before: str, settings: Settings) -> Cost:
    """What the nth turn took; `before` is the system message of the turn before."""
    system, messages, tools = answering.asked[0]
    parts, ends, at = split(system), _ends(system), 0
    tokens = {"tools": count(tools)}
    for name, part in parts.items():  # a token counts where it ends, so that the sections add up
        tokens[name] = bisect_right(ends, at + len(part)) - bisect_right(ends, at)
        at += len(part)
    *history, question = [message["content"] for message in messages]
    tokens |= {"history": sum(map(count, history)), "question": count(question)}
    return Cost(
        turn=n,
        tokens=tokens,
        estimated=sum(map(estimate, (tools, system, *history, question))),
        prefix=bisect_right(ends, sum(1 for _ in takewhile(bool, map(eq, before, system)))),
        fixed=sha256(f"{parts['rules']}{tools}".encode()).hexdigest()[:16],
        filled=_filled(parts, settings),
        calls=len(answering.asked),
        upkeep_calls=len(looking_back.asked),
        upkeep=sum(count(asked[0]) + count(asked[1][0]["content"]) for asked in looking_back.asked),
    )


def _filled(parts: Mapping[str, str], settings: Settings) -> float:
    frames = {
        "person": (render("person", known=""), settings.context_budget),
        "summary": (render("summary", summary="> "), settings.summary_budget),
    }
    return max(
        budget.cost(parts[name].removeprefix("\n\n")[len(frame) :]) / budget.amount if name in parts else 0.0
        for name, (frame, budget) in frames.items()
    )


async def converse(turns: int) -> tuple[list[Cost], dict[str, int]]:
    """What each turn took, and how much there is to know in the end."""
    costs, before, now = [], "", START
    answering, looking_back = Scripted(), LookingBack()
    with tempfile.TemporaryDirectory() as home, Progress(console=Console(stderr=True)) as bar:
        # With a judge, so that its rulings too have to ride along in the one call.
        settings = Settings.load(home=Path(home), embedder="bundled", judge=True)
        async with Companion.open(
            settings, clock=lambda: now, model=answering, upkeep_model=looking_back, upkeep=False
        ) as pet:
            for n in bar.track(range(1, turns + 1), description="turns"):
                said = turn(n)
                answering.begin(said)
                looking_back.begin(said)
                await pet.respond(said.text, user=USER)
                await (await pet.runtime()).worker.settle(hurry=False)
                if any(job.failures or job.crashes for job in await pet.components.queue.listed(now)):
                    raise RuntimeError(f"turn {n} left work undone; see the log above")
                costs.append(cost(n, answering, looking_back, before, settings))
                before = answering.asked[0][0]
                now += timedelta(minutes=Random(n).randint(2, 300))
            facts, tasks = await pet.memories.list(user=USER), await pet.components.tasks.list(USER, PRIVATE)
    return costs, {"facts": len(facts), "open_tasks": len(tasks)}


def bars(costs: Sequence[Cost]) -> list[dict[str, Any]]:
    """What is held to: {"bar", "value", "at_most", "reached"}."""
    values: list[tuple[str, float, float]] = []
    last = FIRST - 1 + WINDOW
    if len(costs) >= last + WINDOW:
        early, late = costs[FIRST - 1 : last], costs[-WINDOW:]
        until, after = costs[:last], costs[last:]
        whole = percentile(late, "whole") / percentile(early, "whole")
        standing = max(cost.standing for cost in after) / max(cost.standing for cost in until)
        values += [
            ("a prompt of the last hundred turns to one of turns 11 to 110, p95", whole, SLACK),
            ("the longest without history and question, after turn 110 to before", standing, SLACK),
            ("upkeep calls a turn, mean of the last hundred", _mean(late, "upkeep_calls"), 0.5),
            ("tokens sent for upkeep a turn, mean of the last hundred", _mean(late, "upkeep"), UPKEEP),
        ]
    values += [
        ("about the person, or summary, to its budget, most", max(cost.filled for cost in costs), 1.0),
        ("different persona, rules and tools", len({cost.fixed for cost in costs}), 1),
        ("upkeep calls an exchange, most", max(cost.upkeep_calls for cost in costs), 1),
    ]
    return [
        {"bar": name, "value": value, "at_most": most, "reached": value <= most}
        for name, value, most in values
    ]


def percentile(costs: Sequence[Cost], what: str, share: float = 0.95) -> float:
    """The value that this share of them does not exceed."""
    values = sorted(getattr(cost, what) for cost in costs)
    return float(values[math.ceil(share * len(values)) - 1])


def _mean(costs: Sequence[Cost], what: str) -> float:
    return statistics.fmean(getattr(cost, what) for cost in costs)


def languages() -> dict[str, dict[str, float]]:
    """How far the estimate is off, on the same few sentences in each language, and on the rules."""
    found = {}
    for name, text in {"Persona and rules": f"{read('persona')}\n{read('assistant')}", **SAMPLES}.items():
        real = count(text)
        found[name] = {
            "tokens": real,
            "estimated": estimate(text),
            "off": estimate(text) / real - 1,
            "bytes_a_token": len(text.encode()) / real,
        }
    return found


def measure(turns: int) -> dict[str, Any]:
    costs, known = asyncio.run(converse(turns))
    later = costs[1:] or costs
    return {
        "costs": [{**asdict(cost), "whole": cost.whole} for cost in costs],
        "bars": bars(costs),
        "upkeep": {
            "calls": {"most": max(c.upkeep_calls for c in costs), "mean": _mean(costs, "upkeep_calls")},
            "calls_of_the_reply": _mean(costs, "calls"),
            "tokens": {
                "early": _mean(costs[FIRST - 1 : FIRST - 1 + WINDOW] or costs, "upkeep"),
                "late": _mean(costs[-WINDOW:], "upkeep"),
                "most": max(cost.upkeep for cost in costs),
            },
        },
        "prefix": {
            "tokens": statistics.median(cost.prefix for cost in later),
            "of_the_system_message": statistics.fmean(cost.prefix / cost.system for cost in later),
            "of_the_prompt_with_tools": statistics.fmean(
                (cost.prefix + cost.tokens["tools"]) / cost.whole for cost in later
            ),
        },
        "languages": languages(),
        "known": known,
    }


def show(result: Mapping[str, Any]) -> None:
    console, costs = Console(), result["costs"]
    shown = [costs[n - 1] for n in SHOWN if n <= len(costs)]
    table = Table("tokens at turn", *(f"{cost['turn']:,}" for cost in shown))
    for section in SECTIONS:
        if any(section in cost["tokens"] for cost in costs):
            table.add_row(NAMES.get(section, section), *(f"{c['tokens'].get(section, 0):,}" for c in shown))
    rows = {"the whole prompt": "whole", "as Hachi estimates it": "estimated", "the upkeep call": "upkeep"}
    for name, what in rows.items():
        table.add_row(name, *(f"{cost[what]:,}" for cost in shown))
    console.print(table)
    known = result["known"]
    console.print(f"known in the end: {known['facts']} facts, {known['open_tasks']} open tasks")
    table = Table("estimate", "tokens", "estimated", "off", "bytes a token")
    for name, row in result["languages"].items():
        off, size = f"{100 * row['off']:+.0f} %", f"{row['bytes_a_token']:.2f}"
        table.add_row(name, str(row["tokens"]), str(row["estimated"]), off, size)
    console.print(table)
    upkeep, prefix = result["upkeep"], result["prefix"]
    calls, sent = upkeep["calls"], upkeep["tokens"]
    console.print(
        f"model calls a turn: {upkeep['calls_of_the_reply']:.2f} for the reply and {calls['mean']:.2f} for "
        f"upkeep, {calls['most']} at most; tokens sent for upkeep: {sent['early']:,.0f} in the mean of turns "
        f"11 to 110, {sent['late']:,.0f} of the last hundred, {sent['most']:,} at most"
    )
    console.print(
        f"the same as in the turn before, from the start: {prefix['tokens']:,.0f} tokens of the system "
        f"message, {prefix['of_the_system_message']:.0%} of it; with the tools "
        f"{prefix['of_the_prompt_with_tools']:.0%} of the prompt"
    )
    table = Table("bar", "value", "at most", "")
    for bar in result["bars"]:
        reached = "reached" if bar["reached"] else "missed"
        table.add_row(bar["bar"], f"{bar['value']:.3f}", f"{bar['at_most']:g}", reached)
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=1_000)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.turns < 1:
        parser.error("--turns: there is at least one turn")
    if options.plot and find_spec("matplotlib") is None:
        parser.error("--plot needs matplotlib: pip install matplotlib")
    if options.plot and not options.plot.parent.is_dir():
        parser.error(f"--plot: there is no folder {options.plot.parent}; make it first")
    result = measure(options.turns)
    if options.plot:
        plot(result["costs"], options.plot)
    print(json.dumps(result, indent=2)) if options.json else show(result)
    return 0 if all(bar["reached"] for bar in result["bars"]) else 1


if __name__ == "__main__":
    sys.exit(main())
