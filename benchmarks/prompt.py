"""What does a turn cost in tokens, with its upkeep, and does it grow? One conversation, counted by section.

    python benchmarks/prompt.py [--turns N] [--json]

A real companion in a temporary home; its two models are scripted. One answers, and on the way searches, notes
and closes tasks, and corrects a fact in every fourth turn. One consolidates and hands in ever more. So the
figures say what is sent, and nothing of how good it is. The person writes every 2 to 300 minutes: English, a
tenth French, a tenth Hebrew, 1 to 25 sentences. Each hundred turns has the same lengths in the same languages
about other things. Nothing but the clock and the window makes consolidations due.

Counted is all that the models are sent in a turn: for each call the system message, the messages with what
tools brought, and the tools as JSON; by section for the first call. A token is four bytes, as in the
product's budgets: beside Mistral's tokenizer of 131,000 pieces that is 16 % more in English, and 2 % less
in Hebrew. The edition before this one took 6,425 tokens and 0.51 upkeep calls a turn in this story.

Bars: in the mean at most 4,500 tokens and 0.4 upkeep calls a turn; the 95th percentile of the first call over
the last hundred turns is at most 1.02 times that over turns 11 to 110. Exit 1 where missed.
"""

import asyncio
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any

from harness import arguments, finish, new_companion, over, percentile
from prompt_world import START, WINDOW, Answering, Consolidating, turn

from agent.types.budget import tokens as count
from prompts import read

USER = "maya"
SHOWN = (1, 20, 70, 100, 500, 1_000)
FIRST = 11
"""The first turn that is compared, when the history is full."""
TOKENS, CALLS, SLACK = 4_500, 0.4, 1.02


@dataclass(frozen=True)
class Cost:
    """Of one turn, in tokens where nothing else is said."""

    turn: int
    tokens: Mapping[str, int]
    """Of the first call, by section."""
    calls: int
    """Of the model that answers."""
    reply: int
    """The tokens that these were sent."""
    upkeep_calls: int
    upkeep: int
    """The tokens that these were sent."""

    @property
    def first(self) -> int:
        return sum(self.tokens.values())

    @property
    def whole(self) -> int:
        return self.reply + self.upkeep


def split(system: str) -> dict[str, str]:
    """The system message by its headings. Nothing quoted can look like one, and joined it is whole again."""
    heads = {name: read(name).splitlines()[0] for name in ("person", "summary", "setting")}
    found = {name: system.find(f"\n\n{head}\n") for name, head in heads.items()}
    starts = [("rules", 0), *((name, at) for name, at in found.items() if at >= 0), ("", len(system))]
    return {name: system[at:end] for (name, at), (_, end) in pairwise(starts)}


def sent(asked: Sequence[tuple[str, list[Any], str]]) -> int:
    """The tokens of some calls."""
    told = ("content", "text", "name", "arguments", "output")
    texts = [str(item[name]) for _, items, _ in asked for item in items for name in told if item.get(name)]
    return sum(map(count, [*texts, *(text for system, _, tools in asked for text in (system, tools))]))


def cost(n: int, answering: Answering, consolidating: Answering) -> Cost:
    """What the nth turn took."""
    system, messages, tools = answering.asked[0]
    parts = split(system)
    *history, question = [message["content"] for message in messages]
    tokens = {"tools": count(tools)} | {name: count(part) for name, part in parts.items()}
    tokens |= {"history": sum(map(count, history)), "question": count(question)}
    return Cost(
        turn=n,
        tokens=tokens,
        calls=len(answering.asked),
        reply=sent(answering.asked),
        upkeep_calls=len(consolidating.asked),
        upkeep=sent(consolidating.asked),
    )


async def converse(turns: int) -> list[Cost]:
    costs, now = [], START
    answering, consolidating = Answering(), Consolidating()
    models: dict[str, Any] = {"model": answering, "upkeep_model": consolidating}
    async with new_companion({}, clock=lambda: now, **models) as pet:
        for n in range(1, turns + 1):
            said = turn(n)
            answering.begin(said)
            consolidating.begin(said)
            await pet.settle(hurry=False)  # what has become due since the turn before
            await pet.respond(said.text, user=USER)
            await pet.settle(hurry=False)
            if any(job.failures or job.crashes for job in await pet.components.queue.listed(now)):
                raise RuntimeError(f"turn {n} left work undone; see the log above")
            costs.append(cost(n, answering, consolidating))
            now += timedelta(minutes=Random(n).randint(2, 300))
    return costs


def bars(costs: Sequence[Cost]) -> dict[str, tuple[float, float]]:
    """What is held to: its value, and how much it may be at most."""
    found = {
        "tokens sent a turn, mean": (mean(costs, "whole"), TOKENS),
        "upkeep calls a turn, mean": (mean(costs, "upkeep_calls"), CALLS),
    }
    last = FIRST - 1 + WINDOW
    if len(costs) >= last + WINDOW:
        first = [cost.first for cost in costs]
        grown = percentile(first[-WINDOW:], 95) / percentile(first[FIRST - 1 : last], 95)
        found["a first call of the last hundred turns to one of turns 11 to 110, p95"] = (grown, SLACK)
    return found


def mean(costs: Sequence[Cost], what: str) -> float:
    return statistics.fmean(getattr(cost, what) for cost in costs)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--turns", type=int, default=70)
    options = parser.parse_args()
    if options.turns < 1:
        parser.error("--turns: there is at least one turn")
    costs = asyncio.run(converse(options.turns))
    held = bars(costs)
    shown = (cost for cost in costs if cost.turn in SHOWN)
    result = {
        "turns": {str(cost.turn): asdict(cost) | {"first": cost.first} for cost in shown},
        "mean": {name: mean(costs, name) for name in ("calls", "reply", "upkeep_calls", "upkeep")},
        "bars": {name: {"value": value, "at most": most} for name, (value, most) in held.items()},
    }
    values, most = ({name: pair[at] for name, pair in held.items()} for at in (0, 1))
    return finish(options, result, over(most, values))


if __name__ == "__main__":
    sys.exit(main())
