"""The judge: a model that decides, in one call for all doubts of a turn, whether a fact replaces another."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from agent.asking import ask
from agent.models import ChosenModel
from agent.output.json_repair import object_with
from memory.judging import Doubt
from memory.people.profile import one_line
from prompts import render

log = logging.getLogger("hachi.judge")


class ModelJudge:
    """A `memory.judging.Judge`. What it does not rule on, or not readably, is kept as it is."""

    def __init__(self, chosen: ChosenModel) -> None:
        self._chosen = chosen

    async def __call__(self, doubts: Sequence[Doubt]) -> list[bool]:
        answer = await ask(self._chosen, "judge", render("judge", pairs=written_pairs(doubts)))
        rulings = object_with(answer, "rulings")
        if rulings is None:
            log.warning("the judge's answer could not be read; both facts are kept")
            return [False] * len(doubts)
        replacing = pairs_to_replace(rulings)
        return [number in replacing for number in range(1, len(doubts) + 1)]


def written_pairs(doubts: Sequence[Doubt]) -> str:
    """The pairs as a model is shown them, numbered from 1."""
    return "\n\n".join(_pair(number, doubt) for number, doubt in enumerate(doubts, 1))


def _pair(number: int, doubt: Doubt) -> str:
    return (
        f"Pair {number}\n"
        f"> older ({doubt.old_said_at:%Y-%m-%d}): {one_line(doubt.old)}\n"
        f"> newer ({doubt.new_said_at:%Y-%m-%d}): {one_line(doubt.new)}"
    )


def pairs_to_replace(answer: Mapping[str, Any]) -> set[int]:
    """The numbers of the pairs that are ruled "replace" in a model's ``{"rulings": […]}``; what cannot be
    read rules nothing."""
    rulings = answer.get("rulings")
    return {
        int(ruling["pair"])
        for ruling in (rulings if isinstance(rulings, list) else ())
        if isinstance(ruling, dict)
        and ruling.get("action") == "replace"
        and str(ruling.get("pair", "")).isdecimal()
    }
