"""How much of something the model gets to see, in characters or tokens, cut at whole items."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

T = TypeVar("T")

_WRITTEN = re.compile(r"\s*(\d[\d_,]*)\s*(characters?|chars?|c|tokens?|t)?\s*", re.IGNORECASE)

BYTES_A_TOKEN = 4
"""What today's tokenizers come to on running text, in UTF-8 bytes: about 4.3 for English, 3 to 4 for French,
Hebrew and Chinese. `benchmarks/prompt.py` counts with a real tokenizer beside it."""


def tokens(text: str) -> int:
    """About how many tokens a text is, without the tokenizer of a model that nobody has named."""
    return math.ceil(len(text.encode("utf-8", "replace")) / BYTES_A_TOKEN)


@dataclass(frozen=True, slots=True)
class Budget:
    amount: int
    unit: Literal["characters", "tokens"] = "characters"

    @classmethod
    def parse(cls, text: "str | int | Budget") -> "Budget":
        """``500``, ``500 characters`` or ``125 tokens``. Raises ValueError."""
        if isinstance(text, Budget):
            return text
        written = _WRITTEN.fullmatch(str(text))
        if written is None:
            raise ValueError("give a number of characters or tokens, such as 500 or 125 tokens")
        amount = int(written[1].replace("_", "").replace(",", ""))
        return cls(amount, "tokens" if (written[2] or "c").lower().startswith("t") else "characters")

    @property
    def characters(self) -> int:
        """The same in characters, for what is counted so."""
        return self.amount * (BYTES_A_TOKEN if self.unit == "tokens" else 1)

    def cost(self, text: str) -> int:
        return tokens(text) if self.unit == "tokens" else len(text)

    def __str__(self) -> str:
        return f"{self.amount} {self.unit}"


class Purse:
    """A budget that is being spent on items that are joined by one character, such as lines. Exact: it counts
    characters or bytes, so that rounding each item to tokens adds nothing and their order does not matter."""

    def __init__(self, budget: Budget) -> None:
        self._in_bytes = budget.unit == "tokens"
        self._left = budget.characters + 1  # between n items stand n - 1

    def take(self, text: str) -> bool:
        """Whether the whole of it still fits; then it is paid for."""
        size = self._size(text)
        if size > self._left:
            return False
        self._left -= size
        return True

    def spend(self, text: str) -> None:
        """Pay for what is said in any case."""
        self._left -= self._size(text)

    def _size(self, text: str) -> int:
        return 1 + (len(text.encode("utf-8", "replace")) if self._in_bytes else len(text))


def newest_that_fit(items: Sequence[tuple[T, str]], budget: Budget) -> list[T]:
    """The last of the items, in their order, whose texts fit together; none is cut, none is skipped."""
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
