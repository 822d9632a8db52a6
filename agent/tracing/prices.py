"""What a turn cost: by the prices of `HACHI_PRICES`, else by those that the package genai-prices brings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from agent.tracing.trace import Summary
from agent.types import Usage
from agent.types.price import MILLION, Price

FEW = 1_000
"""Tokens whose price is asked for: very long prompts cost more a token with some models."""


@dataclass(frozen=True, slots=True)
class Prices:
    given: Mapping[str, Price]
    """By the name of a model, before those of the package."""

    def of(self, model: str) -> Price | None:
        """Return the price of a model, by its name with or without its maker; None if it is unknown."""
        name = model.rpartition("/")[2]
        return self.given.get(model) or self.given.get(name) or _listed(name)

    def cost(self, summary: Summary) -> float | None:
        """Return what a turn with the work after it cost; None if the price of a model is unknown."""
        parts = [(summary.model, summary.usage), *((one.model, one.usage) for one in summary.work)]
        return self.total((model, usage) for model, usage in parts if usage != Usage())

    def total(self, parts: Iterable[tuple[str, Usage]]) -> float | None:
        priced = [(self.of(model), usage) for model, usage in parts]
        costs = [price.of(usage) for price, usage in priced if price]
        return sum(costs) if costs and len(costs) == len(priced) else None


@cache
def _listed(model: str) -> Price | None:
    from genai_prices import Usage as Counted  # here: it takes 60 ms, and most lists need it for no model
    from genai_prices import calc_price

    kinds = {"input_tokens": FEW}, {"output_tokens": FEW}, {"input_tokens": FEW, "cache_read_tokens": FEW}
    try:
        return Price(
            *(float(calc_price(Counted(**kind), model).total_price) * MILLION / FEW for kind in kinds)
        )
    except LookupError:
        return None
