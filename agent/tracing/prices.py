"""What a turn cost: prices of a million tokens by model, from `HACHI_PRICES` and a table of common ones."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agent.tracing.trace import Summary
from agent.types import Usage
from agent.types.price import Price

COMMON = {
    "gpt-5.5": Price(5, 30, 0.5),
    "gpt-5.4": Price(2.5, 15, 0.25),
    "gpt-5.4-mini": Price(0.75, 4.5, 0.075),
    "gpt-5.4-nano": Price(0.2, 1.25, 0.02),
    "gpt-5.2": Price(1.75, 14, 0.175),
    "gpt-5.1": Price(1.25, 10, 0.125),
    "gpt-5": Price(1.25, 10, 0.125),
    "gpt-5-mini": Price(0.25, 2, 0.025),
    "gpt-5-nano": Price(0.05, 0.4, 0.005),
    "gpt-4.1": Price(2, 8, 0.5),
    "gpt-4.1-mini": Price(0.4, 1.6, 0.1),
    "gpt-4o": Price(2.5, 10, 1.25),
    "gpt-4o-mini": Price(0.15, 0.6, 0.075),
    "o3": Price(2, 8, 0.5),
    "o4-mini": Price(1.1, 4.4, 0.275),
    "mistral-medium": Price(1.5, 7.5, 0.15),
    "mistral-small": Price(0.15, 0.6, 0.015),
}
"""US dollars of November 2026, as the package genai-prices 0.2.3 lists them, without the higher prices of
very long prompts. They change: HACHI_PRICES wins."""


@dataclass(frozen=True, slots=True)
class Prices:
    given: Mapping[str, Price]
    """By the name of a model, before those of the table."""

    def of(self, model: str) -> Price | None:
        """Return the price of a model, by its name with or without its maker and its version."""
        name = model.rpartition("/")[2]
        short = re.sub(r"-(latest|\d{4}-\d{2}-\d{2}|\d{4})$", "", name)
        known = {**COMMON, **self.given}
        return next((known[one] for one in (model, name, short) if one in known), None)

    def cost(self, summary: Summary) -> float | None:
        """Return what a turn with the work after it cost; None if the price of a model is unknown."""
        parts = [(summary.model, summary.usage), *((one.model, one.usage) for one in summary.work)]
        return self.total((model, usage) for model, usage in parts if usage != Usage())

    def total(self, parts: Iterable[tuple[str, Usage]]) -> float | None:
        priced = [(self.of(model), usage) for model, usage in parts]
        costs = [price.of(usage) for price, usage in priced if price]
        return sum(costs) if costs and len(costs) == len(priced) else None
