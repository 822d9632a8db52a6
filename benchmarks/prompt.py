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
in Hebrew. New are the tokens of a first call behind what it shares with the first call of the turn before: a
server that keeps what it has computed evaluates these alone. In some turns the oldest block of the history is
cut off, and all of the history is new.

Bars: in the mean at most 4,500 tokens and 0.4 upkeep calls a turn; the 95th percentile of the first call over
the last hundred turns is at most 1.02 times that over turns 11 to 110; what is the same in every turn takes
at most 1,300 tokens. Exit 1 where missed.
"""

import asyncio
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import pairwise, takewhile
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
TOKENS, CALLS, SLACK, FIXED = 4_500, 0.4, 1.02, 1_300


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
    new: int = 0
    """Tokens of the first call that do not repeat those of the turn before."""
    cut: bool = False
    """Whether the history begins elsewhere than in the turn before."""

    @property
    def first(self) -> int:
        return sum(self.tokens.values())

    @property
    def whole(self) -> int:
        return self.reply + self.upkeep


def split(message: str) -> dict[str, str]:
    """The question's message by its headings; nothing else can look like one. Joined it is whole again."""
    heads = {name: read(name).splitlines()[0] for name in ("person", "summary", "setting", "question")}
    whole = f"\n{message}"
    found = {name: whole.find(f"\n{head}\n") for name, head in heads.items()}
    starts = [*((name, at) for name, at in found.items() if at >= 0), ("", len(message))]
    return {name: message[at:end] for (name, at), (_, end) in pairwise(starts)}


def sent(asked: Sequence[tuple[str, list[Any], str]]) -> int:
    """The tokens of some calls."""
    told = ("content", "text", "name", "arguments", "output")
    texts = [str(item[name]) for _, items, _ in asked for item in items for name in told if item.get(name)]
    return sum(map(count, [*texts, *(text for system, _, tools in asked for text in (system, tools))]))


def pieces(call: tuple[str, list[Any], str]) -> list[str]:
    """What a server computes one after the other."""
    system, messages, tools = call
    return [system, tools, *(message["content"] for message in messages)]


def cost(n: int, answering: Answering, consolidating: Answering, before: Sequence[str]) -> Cost:
    """What the nth turn took; `before` are the pieces of the turn before."""
    system, tools, *history, question = now = pieces(answering.asked[0])
    tokens = {"rules": count(system), "tools": count(tools), "history": sum(map(count, history))}
    tokens |= {name: count(part) for name, part in split(question).items()}
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(now, before, strict=False)))
    return Cost(
        new=sum(map(count, now[same:])),
        cut=len(before) > 3 and now[2] != before[2],
        turn=n,
        tokens=tokens,
        calls=len(answering.asked),
        reply=sent(answering.asked),
        upkeep_calls=len(consolidating.asked),
        upkeep=sent(consolidating.asked),
    )


async def converse(turns: int) -> list[Cost]:
    costs, before, now = [], list[str](), START
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
            if any(job.failures or job.crashes for job in await pet.components.queue.listed()):
                raise RuntimeError(f"turn {n} left work undone; see the log above")
            costs.append(cost(n, answering, consolidating, before))
            before = pieces(answering.asked[0])
            now += timedelta(minutes=Random(n).randint(2, 300))
    return costs


def bars(costs: Sequence[Cost]) -> dict[str, tuple[float, float]]:
    """What is held to: its value, and how much it may be at most."""
    found = {
        "tokens sent a turn, mean": (mean(costs, "whole"), TOKENS),
        "upkeep calls a turn, mean": (mean(costs, "upkeep_calls"), CALLS),
        "tokens that are the same in every turn": (
            costs[0].tokens["rules"] + costs[0].tokens["tools"],
            FIXED,
        ),
    }
    last = FIRST - 1 + WINDOW
    if len(costs) >= last + WINDOW:
        first = [cost.first for cost in costs]
        grown = percentile(first[-WINDOW:], 95) / percentile(first[FIRST - 1 : last], 95)
        found["a first call of the last hundred turns to one of turns 11 to 110, p95"] = (grown, SLACK)
    return found


def new(costs: Sequence[Cost]) -> dict[str, dict[str, float]]:
    """The new tokens of plain turns and of those that cut a block off, without the first."""
    kinds = {
        name: [one.new for one in costs[1:] if one.cut is cut]
        for name, cut in (("plain", False), ("cut", True))
    }
    return {
        name: {"mean": statistics.fmean(found), "p90": percentile(found, 90)}
        for name, found in kinds.items()
        if found
    }


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
        "new": new(costs),
        "bars": {name: {"value": value, "at most": most} for name, (value, most) in held.items()},
    }
    values, most = ({name: pair[at] for name, pair in held.items()} for at in (0, 1))
    return finish(options, result, over(most, values))


if __name__ == "__main__":
    sys.exit(main())
