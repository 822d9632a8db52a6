"""The text that stands for a message in the index: its own, and that of the exchange around it.

An answer is often only found by its question, and "yes, last spring!" by what it answers. So each message
has two entries: itself, and a window of the two messages before and after it. Evidence recall@10 on LoCoMo
is 0.81 with windows and 0.71 without; one message each side gives 0.79, three or four no more than two.

What is encoded:

    entry     vector               words (BM25)
    message   its text             ``Author: text``
    window    `window_text`        `window_text`
    fact      its content          its content
"""

from collections.abc import Sequence
from datetime import timedelta

from memory.records import Message

REACH = 2
"""Messages before, and as many after."""

GAP = timedelta(hours=6)
"""A longer silence ends the exchange."""

NEIGHBOUR_LIMIT = 500
"""Characters of a neighbour that count, so that a long one does not drown the message itself."""

LIMIT = 2_000
"""Characters of the message itself that count."""


def words_text(author: str, text: str) -> str:
    """What is encoded for the words of a message: who said it, and what."""
    return f"{author}: {text[:LIMIT]}"


def window_text(messages: Sequence[Message], i: int) -> str:
    """The exchange around ``messages[i]``, a line each with its author. `messages` in order of time."""
    return "\n".join(
        words_text(messages[at].author, messages[at].text if at == i else messages[at].text[:NEIGHBOUR_LIMIT])
        for at in range(_edge(messages, i, -1), _edge(messages, i, 1) + 1)
    )


def touched_windows(messages: Sequence[Message], i: int) -> range:
    """The positions whose window changes when ``messages[i]`` arrives, its own among them."""
    return range(_edge(messages, i, -1), _edge(messages, i, 1) + 1)


def _edge(messages: Sequence[Message], i: int, step: int) -> int:
    """How far the exchange goes from `i` in one direction."""
    at = i
    while abs(at + step - i) <= REACH and 0 <= at + step < len(messages):
        here, there = messages[at], messages[at + step]
        if here.conversation_id != there.conversation_id or abs(there.sent_at - here.sent_at) > GAP:
            break
        at += step
    return at
