"""Decide on retries of a model call, and on the change to the second model if the first does not answer.

A turn that has changed over stays with the second model, so that it does not wait twice for a silent server.
The next turn asks the first again, unless its breaker is open.
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
"""Seconds before the first retry, and at most before a later one."""


class ChangedOver(ExplainedFailure):
    """A recorded call after which the second model was asked."""


def tries_again(chosen: "ChosenModel", error: Exception, tries: int) -> bool:
    """Return whether the model is asked once more after so many `tries`. Not if its breaker is open."""
    return tries <= chosen.retries and chosen.breaker.state == "closed" and worth_waiting(error)


def pause_before(error: Exception, tries: int) -> float:
    """Return the seconds before the next try: what the server asks for, else twice as many each time."""
    return get_retry_after(error) or min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (tries - 1)) * uniform(0.8, 1.2)


def changes_over(chosen: "ChosenModel", error: Exception) -> bool:
    """Return whether the second model is asked after the last try of the first: if the breaker is open, or
    the server wants money or does not answer. Not if the server refuses the request."""
    if chosen.fallback is None:
        return False
    if isinstance(error, ChangedOver) or isinstance(error.__cause__, CircuitOpen):
        return True
    if isinstance(error, openai.APIStatusError) and no_money(error):
        return True
    return server_fault(error, None if chosen.brought else chosen.source) is not None


def both_failed(first: "ChosenModel", error: Exception, second: Exception) -> Exception:
    """Return a failure whose one line explains why both the first and the second model failed."""
    if isinstance(error, ChangedOver):  # the recorded failure has both reasons
        return second
    assert first.fallback is not None
    explained = _explained(first.fallback, second)
    why = f"{_explained(first, error)}; the fallback model: {explained}"
    failure = ExplainedFailure(why)
    failure.error = type(explained)(why)
    failure.error.retry_after = explained.retry_after
    return failure


def _explained(chosen: "ChosenModel", error: Exception) -> ModelError:
    failure = model_error(error, chosen.source, chosen.name if chosen.brought else "")
    return failure if isinstance(failure, ModelError) else ModelUnavailable(str(failure or error))


def without_provider_state(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the items of a turn without the data of their provider: reasoning, signatures, ids."""
    return [
        {name: value for name, value in item.items() if name not in ("id", "provider_data")}
        for item in items
        if item.get("type") != "reasoning"
    ]
