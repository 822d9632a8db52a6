"""The judge: one model call decides, for all unclear pairs of a turn, which new facts replace old ones."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from agent.models.ask import ask
from agent.models.choose import ChosenModel
from agent.models.json_repair import object_with
from memory.facts.similar import Doubt
from memory.text import one_line
from prompts import render

log = logging.getLogger("hachi.judge")


class ModelJudge:
    """Implements `memory.facts.similar.Judge`. Keeps both facts if a ruling is missing or unreadable."""

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
    """Return the pairs as the prompt shows them, numbered from 1."""
    return "\n\n".join(_pair(number, doubt) for number, doubt in enumerate(doubts, 1))


def _pair(number: int, doubt: Doubt) -> str:
    return (
        f"Pair {number}\n"
        f"> older ({doubt.old_said_at:%Y-%m-%d}): {one_line(doubt.old)}\n"
        f"> newer ({doubt.new_said_at:%Y-%m-%d}): {one_line(doubt.new)}"
    )


def pairs_to_replace(answer: Mapping[str, Any]) -> set[int]:
    """Return the numbers of the pairs ruled "replace" in ``{"rulings": […]}``. Ignores malformed rulings."""
    rulings = answer.get("rulings")
    return {
        int(ruling["pair"])
        for ruling in (rulings if isinstance(rulings, list) else ())
        if isinstance(ruling, dict)
        and ruling.get("action") == "replace"
        and str(ruling.get("pair", "")).isdecimal()
    }
