"""A call that may change something elsewhere, and who asks its person first."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from memory.audience import Place


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """A call that may change something elsewhere, which its person is asked about before it is run."""

    server: str
    tool: str
    """As the server calls it …"""
    name: str
    """… and as the model does."""
    arguments: str
    """JSON, all of it."""
    user: str
    place: Place
    message: str
    """The id of the message in whose turn the model proposed it."""


Confirm = Callable[[ProposedCall], Awaitable[bool | None]]
"""Asks the person. True runs the call now, False never; None: they are asked, and it runs once they agree."""
