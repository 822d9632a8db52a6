"""Prices of models, as `HACHI_PRICES` writes them."""

import re
from dataclasses import dataclass

from agent.types import Usage

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens, in any currency."""

    input: float
    output: float
    cached: float | None = None
    """The price of cached input; None means the price of other input."""

    def of(self, usage: Usage) -> float:
        cached = self.input if self.cached is None else self.cached
        fresh = max(0, usage.input - usage.cached)
        return (fresh * self.input + usage.cached * cached + usage.output * self.output) / MILLION


def read_prices(text: str) -> dict[str, Price]:
    """Parse ``gpt-5-mini=0.25/2/0.025`` and more of them, between blanks or commas. Raises ValueError."""
    found = {}
    for part in re.split(r"[\s,]+", text.strip()) if text.strip() else ():
        number = r"(\d{1,6}(?:\.\d{1,6})?)"
        match = re.fullmatch(rf"(.+)={number}/{number}(?:/{number})?", part)
        if match is None:
            raise ValueError(f"{part!r} is no price such as gpt-5-mini=0.25/2 or gpt-5-mini=0.25/2/0.025")
        found[match[1]] = Price(*(float(amount) for amount in match.groups()[1:] if amount is not None))
    return found
