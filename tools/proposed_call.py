"""A call that may change something elsewhere, and how its person is asked first."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from memory.audience import Place
from memory.text import one_line


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """A call that may change something elsewhere. Its person is asked before it runs."""

    server: str
    tool: str
    """The tool's name on the server."""
    name: str
    """The tool's name for the model."""
    arguments: str
    """All arguments, as JSON."""
    user: str
    place: Place
    message: str
    """The id of the message in whose turn the model proposed it."""
    title: str = ""
    """What people call the tool; default: its name in words."""
    purpose: str = ""
    """What the tool does, in a sentence."""

    @property
    def called(self) -> str:
        return self.title or self.tool.replace("_", " ").capitalize()

    def in_words(self) -> str:
        """Say what it would do: what its tool is for, then a line for each argument."""
        what = f"{self.called}, with {self.server}{self.purpose and f': {self.purpose}'}"
        given: dict[str, Any] = json.loads(self.arguments)
        return "\n".join([what, *(f"{_words(name)}: {_shown(value)}" for name, value in given.items())])


def _words(name: str) -> str:
    return one_line(name.replace("_", " "))


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"({'; '.join(f'{_words(name)}: {_shown(inner)}' for name, inner in value.items())})"
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    words = {None: "–", True: "yes", False: "no"}
    if value is None or isinstance(value, bool):
        return words[value]
    return str(value).replace("\n", "\n    ")  # so that no line of a text passes for an argument


Confirm = Callable[[ProposedCall], Awaitable[bool | None]]
"""Asks the person. True runs the call now, False never. None means that they were asked, and it runs once
they agree."""
