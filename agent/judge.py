"""The judge: a model that decides, in one call for all doubts of a turn, whether a fact replaces another."""

import logging
from collections.abc import Sequence

from agents import Agent, RunConfig, Runner

from agent.models import ChosenModel
from agent.reply.repair import objects_in
from memory.judging import Doubt
from prompts import render

log = logging.getLogger("hachi.judge")


class ModelJudge:
    """A `memory.judging.Judge`. What it does not rule on, or not readably, is kept as it is."""

    def __init__(self, chosen: ChosenModel) -> None:
        self._config = RunConfig(model=chosen.model, tracing_disabled=True)
        self._agent = Agent[None](name="judge", model_settings=chosen.settings)

    async def __call__(self, doubts: Sequence[Doubt]) -> list[bool]:
        pairs = "\n\n".join(_pair(number, doubt) for number, doubt in enumerate(doubts, 1))
        question = render("judge", pairs=pairs)
        result = await Runner.run(self._agent, question, max_turns=1, run_config=self._config)
        replacing = _replacing(str(result.final_output))
        return [number in replacing for number in range(1, len(doubts) + 1)]


def _pair(number: int, doubt: Doubt) -> str:
    return (
        f"Pair {number}\n"
        f"  older ({doubt.old_said_at:%Y-%m-%d}): {doubt.old}\n"
        f"  newer ({doubt.new_said_at:%Y-%m-%d}): {doubt.new}"
    )


def _replacing(answer: str) -> set[int]:
    """The numbers of the pairs that are ruled "replace"; empty where nothing can be read."""
    for found in objects_in(answer, lambda fields: "rulings" in fields):
        rulings = found.value.get("rulings")
        if isinstance(rulings, list):
            return {
                int(ruling["pair"])
                for ruling in rulings
                if isinstance(ruling, dict)
                and ruling.get("action") == "replace"
                and str(ruling.get("pair", "")).isdigit()
            }
    log.warning("the judge's answer could not be read; both facts are kept")
    return set()
