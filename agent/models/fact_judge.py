"""Ask a model which new facts replace old ones, all doubts of a turn in one call."""

import logging
from collections.abc import Sequence

from agent.models.ask import ask
from agent.models.choice.choose import ChosenModel
from agent.models.json_objects import items, object_with
from memory.facts.similar import Doubt
from memory.text import one_line
from prompts import render

log = logging.getLogger("hachi.judge")


async def judge(chosen: ChosenModel, doubts: Sequence[Doubt]) -> list[bool]:
    """Return for each pair whether the newer fact replaces the older one. Both are kept if a ruling is
    missing or unreadable."""
    pairs = "\n\n".join(
        f"Pair {number}\n"
        f"> older ({doubt.old_stated_at:%Y-%m-%d}): {one_line(doubt.old)}\n"
        f"> newer ({doubt.new_stated_at:%Y-%m-%d}): {one_line(doubt.new)}"
        for number, doubt in enumerate(doubts, 1)
    )
    answer = object_with(await ask(chosen, "judge", render("judge", pairs=pairs)), "rulings")
    if answer is None:
        log.warning("the judge's answer could not be read; both facts are kept")
    rulings = items(answer["rulings"]) if answer else []
    replacing = {
        str(one.get("pair")) for one in rulings if isinstance(one, dict) and one.get("action") == "replace"
    }
    return [str(number) in replacing for number in range(1, len(doubts) + 1)]
