"""The judge: one model call decides, for all unclear pairs of a turn, which new facts replace old ones."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from agent.models.ask import ask
from agent.models.choose import ChosenModel
from agent.models.json_objects import object_with
from memory.facts.similar import Doubt
from memory.text import one_line
from prompts import render

log = logging.getLogger("hachi.judge")


async def judge(chosen: ChosenModel, doubts: Sequence[Doubt]) -> list[bool]:
    """Return for each pair whether the newer fact replaces the older one. Both are kept if a ruling is
    missing or unreadable."""
    pairs = "\n\n".join(_pair(number, doubt) for number, doubt in enumerate(doubts, 1))
    rulings = object_with(await ask(chosen, "judge", render("judge", pairs=pairs)), "rulings")
    if rulings is None:
        log.warning("the judge's answer could not be read; both facts are kept")
    replacing = _pairs_to_replace(rulings or {})
    return [number in replacing for number in range(1, len(doubts) + 1)]


def _pair(number: int, doubt: Doubt) -> str:
    return (
        f"Pair {number}\n"
        f"> older ({doubt.old_said_at:%Y-%m-%d}): {one_line(doubt.old)}\n"
        f"> newer ({doubt.new_said_at:%Y-%m-%d}): {one_line(doubt.new)}"
    )


def _pairs_to_replace(answer: Mapping[str, Any]) -> set[int]:
    """Return the numbers of the pairs ruled "replace" in ``{"rulings": […]}``. Ignores malformed rulings."""
    rulings = answer.get("rulings")
    return {
        int(ruling["pair"])
        for ruling in (rulings if isinstance(rulings, list) else ())
        if isinstance(ruling, dict)
        and ruling.get("action") == "replace"
        and str(ruling.get("pair", "")).isdecimal()
    }
