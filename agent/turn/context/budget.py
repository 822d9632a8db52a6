"""Cut the history or another section to a budget of characters or tokens. Texts are cut between items."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from agent.types.budget import Budget
from memory.text import one_line

T = TypeVar("T")


class Purse:
    """A budget for items that one character joins, such as lines. It counts characters or bytes, so that
    rounding each item to tokens does not add up."""

    def __init__(self, budget: Budget) -> None:
        self._in_bytes = budget.unit == "tokens"
        self._left = budget.characters + 1  # n items have n - 1 separators

    def take(self, text: str) -> bool:
        """Spend on the text if all of it fits, and return whether it did."""
        size = self._size(text)
        if size > self._left:
            return False
        self._left -= size
        return True

    def spend(self, text: str) -> None:
        """Spend on a text that is shown even if it does not fit."""
        self._left -= self._size(text)

    def _size(self, text: str) -> int:
        return 1 + (len(text.encode("utf-8", "replace")) if self._in_bytes else len(text))


def newest_that_fit(items: Sequence[tuple[T, str]], budget: Budget) -> list[T]:
    """Return the longest run of last items whose texts fit together, in their order."""
    purse, kept = Purse(budget), []
    for item, text in reversed(items):
        if not purse.take(text):
            break
        kept.append(item)
    return kept[::-1]


def newest_blocks(items: Sequence[tuple[T, str]], budget: Budget) -> list[T]:
    """Return the last items, such as messages of the history, whose texts fit together, in their order. When
    an item does not fit, the oldest are dropped until half of the budget is free, so that the start then
    stays for several turns."""
    half = replace(budget, amount=budget.amount // 2)
    kept: list[tuple[T, str]] = []
    purse = Purse(budget)
    for item in items:
        kept.append(item)
        if not purse.take(item[1]):
            kept = _newest(kept, half) or _newest(kept, budget)
            purse = Purse(budget)
            for _, text in kept:
                purse.spend(text)
    return [item for item, _ in kept]


def _newest(items: Sequence[tuple[T, str]], budget: Budget) -> list[tuple[T, str]]:
    return newest_that_fit([(item, item[1]) for item in items], budget)


def lines_that_fit(text: str, budget: Budget) -> str:
    """Return the first lines that fit together, whole and without blank ones. If not even the first one fits,
    return its first words and "…"; if no word fits, an empty text."""
    purse, kept = Purse(budget), list[str]()
    lines = [shown for part in text.splitlines() if (shown := one_line(part))]
    for shown in lines:
        if not purse.take(shown):
            break
        kept.append(shown)
    if kept or not lines:
        return "\n".join(kept)
    words: list[str] = []
    for word in lines[0].split():
        if budget.cost(" ".join([*words, word, "…"])) > budget.amount:
            break
        words.append(word)
    return " ".join([*words, "…"]) if words else ""
