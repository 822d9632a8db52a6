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
from typing import NamedTuple

from memory.records import Message
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


def windows_of(messages: Sequence[Message]) -> list[Window]:
    """Return the window of each message, with a line for each message in it. `messages` are in order."""
    texts = [message.text[:NEIGHBOUR_LIMIT] for message in messages]
    meanings = [f"{message.author}: {text}" for message, text in zip(messages, texts, strict=True)]
    windows = []
    sittings = [at for at, (one, next) in enumerate(pairwise(messages), 1) if not _together(one, next)]
    for begin, end in pairwise([0, *sittings, len(messages)]):
        for at in range(begin, end):
            message, near = messages[at], _exchange(messages, at, begin, end)
            words, meaning = texts[near], meanings[near]
            if len(message.text) > NEIGHBOUR_LIMIT:
                words[at - near.start] = text = message.text[:LIMIT]
                meaning[at - near.start] = f"{message.author}: {text}"
            windows.append(Window("\n".join(words), "\n".join(meaning)))
    return windows


def _exchange(messages: Sequence[Message], at: int, begin: int, end: int) -> slice:
    """Return the window of a message within its sitting, from the previous reply to the next one."""
    first, last = max(begin, at - REACH), min(end, at + REACH + 1)
    replies = [one for one in range(first, last) if messages[one].role == "assistant"]
    before = [one + 1 for one in replies if one < at and len(messages[at].text) >= SHORT]
    return slice(max(before, default=first), min((one + 1 for one in replies if one >= at), default=last))


def _together(one: Message, next: Message) -> bool:
    return one.conversation_id == next.conversation_id and abs(next.sent_at - one.sent_at) <= GAP
