"""One model call as a trace keeps it: exactly what was asked, and exactly what came back."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

from agents import ModelSettings

from memory.spans import Begun, begin


class Call:
    """Notes nothing where nobody records."""

    def __init__(self, begun: Begun | None) -> None:
        self._begun = begun

    def began(self) -> None:
        """Something of the answer has come."""
        if self._begun and "first" not in self._begun.span.data:
            self._begun.span.data["first"] = self._begun.elapsed()

    def answered(self, output: Sequence[Any], usage: Any) -> None:
        """As the model gave it, before anything is mended."""
        if self._begun:
            self._begun.span.data["output"] = [copy(item) for item in output]
            details = getattr(usage, "input_tokens_details", None)
            self._begun.span.data["usage"] = usage and {
                "input": getattr(usage, "input_tokens", 0),
                "output": getattr(usage, "output_tokens", 0),
                "cached": getattr(details, "cached_tokens", 0) or 0,
            }


@contextmanager
def recorded_call(
    model: str, system: str | None, input: Any, tools: Sequence[Any], settings: ModelSettings
) -> Iterator[Call]:
    """Around a call. What it raises is noted, and goes on."""
    begun = begin("call", model)
    if begun:
        begun.span.data["request"] = {
            "system": system,
            "input": list(input) if isinstance(input, list) else input,
            "tools": [tool.name for tool in tools],
            "settings": _set(settings),
        }
    try:
        yield Call(begun)
    except BaseException as error:
        if begun:
            begun.end(error)
        raise
    else:
        if begun:
            begun.end()


def _set(settings: ModelSettings) -> dict[str, Any]:
    """What is asked of the model beside the texts; retries are ours, not its."""
    return {
        name: value for name, value in vars(settings).items() if value is not None and name not in ("retry",)
    }
