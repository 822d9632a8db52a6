"""How much text a part of the prompt may take, in characters or tokens."""

import math
import re
from dataclasses import dataclass
from typing import Literal

_WRITTEN = re.compile(r"\s*(\d[\d_,]*)\s*(characters?|chars?|c|tokens?|t)?\s*", re.IGNORECASE)

BYTES_A_TOKEN = 4
"""UTF-8 bytes of running text per token with today's tokenizers: about 4.3 for English, 3 to 4 for French,
Hebrew and Chinese. docs/context.md compares it with tokenizers."""


def tokens(text: str) -> int:
    """Estimate the number of tokens, without a tokenizer."""
    return math.ceil(len(text.encode("utf-8", "replace")) / BYTES_A_TOKEN)


@dataclass(frozen=True, slots=True)
class Budget:
    amount: int
    unit: Literal["characters", "tokens"] = "characters"

    @classmethod
    def parse(cls, text: "str | int | Budget") -> "Budget":
        """Parse ``500``, ``500 characters`` or ``125 tokens``. Raises ValueError."""
        if isinstance(text, Budget):
            return text
        written = _WRITTEN.fullmatch(str(text))
        if written is None:
            raise ValueError("give a number of characters or tokens, such as 500 or 125 tokens")
        amount = int(written[1].replace("_", "").replace(",", ""))
        return cls(amount, "tokens" if (written[2] or "c").lower().startswith("t") else "characters")

    @property
    def characters(self) -> int:
        """Return the budget in characters."""
        return self.amount * (BYTES_A_TOKEN if self.unit == "tokens" else 1)

    def cost(self, text: str) -> int:
        return tokens(text) if self.unit == "tokens" else len(text)

    def __str__(self) -> str:
        return f"{self.amount} {self.unit}"


SUMMARY_BUDGET = Budget(800)
"""The most characters of a conversation's summary."""
