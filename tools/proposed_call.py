"""A call that may change something elsewhere, and how its person is asked first."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from memory.audience import Place


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
    purpose: str = ""


Confirm = Callable[[ProposedCall], Awaitable[bool | None]]
"""Asks the person. True runs the call now, False never. None means that they were asked, and it runs once
they agree."""
