"""The cost of turns, with prices from the package genai-prices."""

from collections.abc import Iterable
from functools import cache

from agent.types import Usage

FEW = 1_000
"""The number of tokens for which prices are looked up. Some models charge more for very long prompts."""


def cost_of(parts: Iterable[tuple[str, Usage]]) -> float | None:
    """Return what these tokens of models cost; None if a price is unknown, or nothing was counted."""
    counted = [(_prices_of(model.rpartition("/")[2]), usage) for model, usage in parts if usage != Usage()]
    costs = [
        price[0] * max(0, usage.input - usage.cached) + price[1] * usage.output + price[2] * usage.cached
        for price, usage in counted
        if price
    ]
    return sum(costs) if costs and len(costs) == len(counted) else None


@cache
def _prices_of(model: str) -> tuple[float, ...] | None:
    """Return a model's prices for a token of input, of output, and of input from the server's cache."""
    from genai_prices import Usage as Counted  # imported here: it takes 60 ms, and most lists need no price
    from genai_prices import calc_price

    kinds = {"input_tokens": FEW}, {"output_tokens": FEW}, {"input_tokens": FEW, "cache_read_tokens": FEW}
    try:
        return tuple(float(calc_price(Counted(**kind), model).total_price) / FEW for kind in kinds)
    except LookupError:
        return None
