"""The texts that are indexed for a message: its own, and its window.

An answer such as "yes, last spring!" is often found only through its question. So each message has two
entries: itself, and a window with the two messages before and after it. On LoCoMo evidence, recall@10 is 0.81
with windows and 0.71 without. One message on each side gives 0.79; three or four do not improve it.

People change the topic from one message to an assistant to the next. So a window ends with a reply and begins
after one, unless the message is so short that it may answer that reply. This lowers the share of neighbours
among ten hits on BEAM from 29 % to 14 %.

    entry     vector               words (BM25)
    message   its text, no code    its text
    window    with authors         without authors
    fact      its content          its content

Authors are not indexed as words, so that "coffee" does not find every message of Captain Coffee. In the
vectors of windows they add 0.006 to recall@10.
"""

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from memory.sql.messages.message_rows import REACH

GAP = timedelta(hours=6)
"""A longer silence ends the window."""

NEIGHBOUR_LIMIT = 500
"""The most characters of a neighbour in a window, so that it does not outweigh the message itself."""

LIMIT = 2_000
"""The most characters of the message itself."""

SHORT = 60
"""A message with fewer characters may make no sense without the message before it."""


class Window(NamedTuple):
    words: str
    meaning: str
    """The text that is embedded."""


def windows_of(messages: Sequence[Any]) -> list[Window]:
    """Return the window of each of these messages, which are in order: the part of its sitting from the
    previous reply to the next one, with a line for each message."""
    texts = [message.text[:LIMIT] for message in messages]
    authors = [message.author for message in messages]
    replies = [message.role == "assistant" for message in messages]
    sent = [(message.conversation_id, message.sent_at) for message in messages]
    words = [text[:NEIGHBOUR_LIMIT] for text in texts]
    meanings = [f"{author}: {text}" for author, text in zip(authors, words, strict=True)]
    windows = []
    ends = [
        at for at, ((one, a), (next, b)) in enumerate(pairwise(sent), 1) if one != next or abs(b - a) > GAP
    ]
    for begin, end in pairwise([0, *ends, len(messages)]):
        for at in range(begin, end):
            first, last = max(begin, at - REACH), min(end, at + REACH + 1)
            if len(texts[at]) >= SHORT:
                first = max((one + 1 for one in range(first, at) if replies[one]), default=first)
            last = min((one + 1 for one in range(at, last) if replies[one]), default=last)
            near, meaning = words[first:last], meanings[first:last]
            if len(texts[at]) > NEIGHBOUR_LIMIT:
                near[at - first] = texts[at]
                meaning[at - first] = f"{authors[at]}: {texts[at]}"
            windows.append(Window("\n".join(near), "\n".join(meaning)))
    return windows
