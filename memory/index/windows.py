"""The texts that the index stores for a message: its own, and its window.

An answer is often found only through its question, and "yes, last spring!" through what it answers. So each
message has two entries: itself, and a window of the two messages before and after it. On LoCoMo evidence
recall@10 is 0.81 with windows and 0.71 without; one message each side gives 0.79, three or four no more.

To an assistant people say one thing after the other. So a window ends with a reply and begins after one,
unless the message is so short that it may answer it: 14 % of ten hits on BEAM are neighbours then, not 29 %.

    entry     vector               words (BM25)
    message   its text, no code    its text
    window    with authors         without authors
    fact      its content          its content

Authors are no words of a text: "coffee" is not to find all that Captain Coffee said. In the vectors of
windows they are worth 0.006.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from memory.records import Message
from memory.sql.messages.message_rows import REACH

GAP = timedelta(hours=6)
"""A longer silence ends the window."""

NEIGHBOUR_LIMIT = 500
"""Characters of a neighbour in a window, so that a long one does not outweigh the message itself."""

LIMIT = 2_000
"""Characters of the message itself."""

SHORT = 60
"""A message with fewer characters may mean nothing without what precedes it."""


class Window(NamedTuple):
    words: str
    meaning: str
    """What the vector is made of."""


def window_of(messages: Sequence[Message], i: int) -> Window:
    """Return the window of ``messages[i]``: one line for each message. `messages` are in order."""
    near = _exchange(messages, i)
    texts = [messages[at].text[: LIMIT if at == i else NEIGHBOUR_LIMIT] for at in near]
    said = (f"{messages[at].author}: {text}" for at, text in zip(near, texts, strict=True))
    return Window("\n".join(texts), "\n".join(said))


def touched_windows(messages: Sequence[Message], i: int) -> range:
    """Return the positions whose windows may contain ``messages[i]``, and of what may be in its own."""
    return range(_edge(messages, i, -1), _edge(messages, i, 1) + 1)


def _exchange(messages: Sequence[Message], i: int) -> range:
    """Return the positions in the window of ``messages[i]``: after the reply before it, and to its own."""
    near = touched_windows(messages, i)
    replies = [at for at in near if messages[at].role == "assistant"]
    first = max((at + 1 for at in replies if at < i and len(messages[i].text) >= SHORT), default=near.start)
    return range(first, min((at + 1 for at in replies if at >= i), default=near.stop))


def _edge(messages: Sequence[Message], i: int, step: int) -> int:
    """Return the last position near `i` in one direction (`step` is 1 or -1)."""
    at = i
    while abs(at + step - i) <= REACH and 0 <= at + step < len(messages):
        here, there = messages[at], messages[at + step]
        if here.conversation_id != there.conversation_id or abs(there.sent_at - here.sent_at) > GAP:
            break
        at += step
    return at
