"""Select the messages of a conversation that one consolidation reads."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import takewhile

from agent.turn.context.budget import newest_that_fit
from agent.types.budget import Budget
from memory.sql.messages.message_rows import Line

MOST_MESSAGES = 24
"""The most messages in one call …"""
MESSAGES = Budget(24_000)
"""… and their total length, each cut to `MAX_MESSAGE`."""
MAX_MESSAGE = 4_000
MOST_PEOPLE = 4
"""The most people whose messages are read in one call."""
ANSWERED_WITHIN = timedelta(minutes=10)
"""How long a message may wait for its reply; then it is consolidated without one."""


def both_ends(text: str) -> str:
    """Cut the middle of a long text: people comment on pasted text before or after it."""
    if len(text) <= MAX_MESSAGE:
        return text
    half = MAX_MESSAGE // 2
    return f"{text[:half]} … {text[-half:]}"


def before_pending(lines: Sequence[Line], since: datetime) -> Sequence[Line]:
    """Return the messages before the first one since then without a reply, whose turn may be running."""
    waits = dict[str, int]()
    for place, line in enumerate(lines):
        if line.message.role == "assistant":
            waits.pop(line.user, None)
        elif line.message.sent_at > since:
            waits.setdefault(line.user, place)
    return lines[: min(waits.values(), default=len(lines))]


def fitting_a_call(lines: Sequence[Line]) -> list[Line]:
    """Return as many of the first messages as fit one call."""
    backwards = [(line, both_ends(line.message.text)) for line in reversed(lines)]
    fit = newest_that_fit(backwards, MESSAGES)[::-1]
    people = dict[str, None]()
    for place, line in enumerate(fit):
        people |= {line.user: None} if line.message.role == "user" else {}
        if len(people) > MOST_PEOPLE:
            return fit[:place]
    return fit


def with_last_replies(lines: Sequence[Line], limit: int) -> Sequence[Line]:
    """Return the first `limit` messages, and the replies to the last of them."""
    rest = takewhile(lambda line: line.message.role == "assistant", lines[limit:])
    return [*lines[:limit], *rest]
