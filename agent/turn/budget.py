"""How much of a section the model sees, in characters or tokens. Texts are cut between items."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from agent.settings import Budget

T = TypeVar("T")


class Purse:
    """A budget spent on items that one character joins, such as lines. It counts characters or bytes, so the
    rounding of each item to tokens does not add up."""

    def __init__(self, budget: Budget) -> None:
        self._in_bytes = budget.unit == "tokens"
        self._left = budget.characters + 1  # n items have n - 1 separators

    def take(self, text: str) -> bool:
        """Spend on the text if all of it fits. Returns whether it did."""
        size = self._size(text)
        if size > self._left:
            return False
        self._left -= size
        return True

    def spend(self, text: str) -> None:
        """Spend on a text that is shown in any case."""
        self._left -= self._size(text)

    def _size(self, text: str) -> int:
        return 1 + (len(text.encode("utf-8", "replace")) if self._in_bytes else len(text))


def newest_that_fit(items: Sequence[tuple[T, str]], budget: Budget) -> list[T]:
    """The longest run of last items whose texts fit together, in their order."""
    purse, kept = Purse(budget), []
    for item, text in reversed(items):
        if not purse.take(text):
            break
        kept.append(item)
    return kept[::-1]


def sentences_that_fit(sentences: Iterable[str], budget: Budget) -> list[str]:
    """The first sentences that fit together."""
    purse, kept = Purse(budget), []
    for sentence in sentences:
        if not purse.take(sentence):
            break
        kept.append(sentence)
    return kept
