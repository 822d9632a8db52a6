"""What does a turn cost in tokens, with its consolidation? A story of three months, counted by section.

    python benchmarks/prompt.py [--turns N] [--json]

A real companion in a temporary home; its two models are scripted. One answers, and on the way searches,
notes and closes tasks, and corrects a fact in every fourth turn. One consolidates and hands in what it was
shown. So the figures say what is sent, and nothing of how good it is. Four people write, alone and in two
places, with days between most messages: English, a tenth French, a tenth Hebrew, 1 to 25 sentences. Nothing
but the clock and the window makes consolidations due.

Counted is all that the models are sent: for each call the system message, the messages with what tools
brought, and the tools as JSON; by section for the first call. A token is four bytes, as in the product's
budgets: beside Mistral's tokenizer of 131,000 pieces that is 16 % more in English, and 2 % less in Hebrew.

Exit 1 where a bar is missed.
"""

import asyncio
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from harness import arguments, finish, new_companion, over
from prompt_world import START, VITAL, Answering, Consolidating, Said, story

from agent.types.budget import tokens as count
from prompts import read

BARS = {
    "tokens of a first call, mean": 1_900,
    "tokens that are the same in every turn": 1_300,
    "consolidation calls a turn": 0.3,
    "consolidation tokens a turn": 450,
    "prompts without the vital fact of their person": 0,
}


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
    consolidations: int
    """The calls of the model that consolidates, before and after the turn."""
    consolidated: int
    """The tokens that these were sent."""
    vital: bool
    """Whether the prompt holds what the person said of importance 0.9, if they have said it there."""

    @property
    def first(self) -> int:
        return sum(self.tokens.values())


def split(message: str) -> dict[str, str]:
    """The question's message by its headings; nothing else can look like one. Joined it is whole again."""
    heads = {name: read(name).splitlines()[0] for name in ("person", "summary", "setting", "question")}
    whole = f"\n{message}"
    found = {name: whole.find(f"\n{head}\n") for name, head in heads.items()}
    starts = [*((name, at) for name, at in found.items() if at >= 0), ("", len(message))]
    return {name: message[at:end] for (name, at), (_, end) in pairwise(starts)}


def sent(asked: Sequence[tuple[str, list[Any], str]]) -> int:
    """The tokens of some calls."""
    names = ("content", "text", "name", "arguments", "output")
    texts = [str(item[name]) for _, items, _ in asked for item in items for name in names if item.get(name)]
    return sum(map(count, [*texts, *(text for system, _, tools in asked for text in (system, tools))]))


def cost(said: Said, answering: Answering, consolidating: Answering, met: bool) -> Cost:
    """What a turn took; `met` is whether the person has written in this talk before."""
    system, (*history, question), tools = answering.asked[0]
    tokens = {"rules": count(system), "tools": count(tools)}
    tokens["history"] = sum(count(one["content"]) for one in history)
    tokens |= {name: count(part) for name, part in split(question["content"]).items()}
    known = split(question["content"]).get("person", "")
    return Cost(
        turn=said.number,
        tokens=tokens,
        calls=len(answering.asked),
        reply=sent(answering.asked),
        consolidations=len(consolidating.asked),
        consolidated=sent(consolidating.asked),
        vital=not met or VITAL.format(user=said.user) in known,
    )


async def converse(turns: int) -> list[Cost]:
    costs, met, now = list[Cost](), set[str](), START
    answering, consolidating = Answering(), Consolidating()
    models: dict[str, Any] = {"model": answering, "consolidation_model": consolidating}
    async with new_companion({}, clock=lambda: now, **models) as pet:
        for said in story(turns):
            now = said.at
            answering.begin(said)
            consolidating.begin(said)
            await pet.admin.purge()
            await pet.settle(hurry=False)  # what has become due since the turn before
            await pet.respond(said.text, user=said.user, place=said.place)
            await pet.settle(hurry=False)
            if any(job.failures or job.crashes for job in await pet.components.queue.listed()):
                raise RuntimeError(f"turn {said.number} left work undone; see the log above")
            costs.append(cost(said, answering, consolidating, said.talk in met))
            met.add(said.talk)
    return costs


def figures(costs: Sequence[Cost]) -> dict[str, float]:
    """What is held to `BARS`."""
    values = (
        mean(costs, "first"),
        costs[0].tokens["rules"] + costs[0].tokens["tools"],
        mean(costs, "consolidations"),
        mean(costs, "consolidated"),
        sum(not cost.vital for cost in costs),
    )
    return dict(zip(BARS, values, strict=True))


def mean(costs: Sequence[Cost], what: str) -> float:
    return statistics.fmean(getattr(cost, what) for cost in costs)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--turns", type=int, default=65)
    options = parser.parse_args()
    if options.turns < 1:
        parser.error("--turns: there is at least one turn")
    costs = asyncio.run(converse(options.turns))
    values = figures(costs)
    result = {
        "last turn": asdict(costs[-1]),
        "mean": {name: mean(costs, name) for name in ("calls", "reply", "consolidations", "consolidated")},
        "bars": {name: {"value": values[name], "at most": most} for name, most in BARS.items()},
    }
    return finish(options, result, over(BARS, values))


if __name__ == "__main__":
    sys.exit(main())
