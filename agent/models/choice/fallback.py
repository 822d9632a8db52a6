"""Decide on retries of a model call, and on the second model, which answers where the first does not.

A turn that has changed over stays with the second, so that a silent server is not waited for twice. The next
turn asks the first again, unless its breaker is open.
"""

from collections.abc import Mapping, Sequence
from random import uniform
from typing import TYPE_CHECKING, Any

import openai
from agents.models._retry_runtime import get_retry_after

from agent.errors import ModelError, ModelUnavailable
from agent.models.failures import ExplainedFailure, model_error, server_fault, worth_waiting
from agent.models.wire.errors import no_money
from memory.process.breaker import CircuitOpen

if TYPE_CHECKING:
    from agent.models.choice.choose import ChosenModel


FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
"""Seconds between tries."""


class ChangedOver(ExplainedFailure):
    """A recorded call after which the second model was asked."""


def tries_again(chosen: "ChosenModel", error: Exception, tries: int) -> bool:
    """Return whether a model is asked once more after so many tries. A server that the breaker leaves alone
    is not."""
    return tries <= chosen.retries and chosen.breaker.state == "closed" and worth_waiting(error)


def pause_before(error: Exception, tries: int) -> float:
    """Return the seconds before the next try: what the server asks for, else twice as many each time."""
    return get_retry_after(error) or min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (tries - 1)) * uniform(0.8, 1.2)


def changes_over(chosen: "ChosenModel", error: Exception) -> bool:
    """Return whether the second model is asked after the last try of the first: its server is left alone,
    wants money, or does not answer. A request that it refuses is refused."""
    if chosen.fallback is None:
        return False
    if isinstance(error, ChangedOver) or isinstance(error.__cause__, CircuitOpen):
        return True
    if isinstance(error, openai.APIStatusError) and no_money(error):
        return True
    return server_fault(error, None if chosen.brought else chosen.source) is not None


def both_failed(first: "ChosenModel", error: Exception, then: Exception) -> Exception:
    """Return a failure that says in one line why neither the first model nor the second answers."""
    if isinstance(error, ChangedOver):  # the recorded failure says both
        return then
    assert first.fallback is not None
    explained = _explained(first.fallback, then)
    why = f"{_explained(first, error)}; the fallback model: {explained}"
    failure = ExplainedFailure(why)
    failure.error = type(explained)(why)
    failure.error.retry_after = explained.retry_after
    return failure


def _explained(chosen: "ChosenModel", error: Exception) -> ModelError:
    found = model_error(error, chosen.source, chosen.name if chosen.brought else "")
    return found if isinstance(found, ModelError) else ModelUnavailable(str(found or error))


def without_provider_state(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the items of a turn without what their provider alone wants back: reasoning, signatures, ids."""
    return [
        {name: value for name, value in item.items() if name not in ("id", "provider_data")}
        for item in items
        if item.get("type") != "reasoning"
    ]
