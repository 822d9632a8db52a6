"""Decides when a conversation is consolidated: not after each exchange, but when there is enough to keep.

What is still among the recent messages of the prompt needs no summary yet. So the model is called once for
several exchanges, and not at all while nobody states anything. Nothing is skipped: what waits is part of the
next slice.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from agent.settings import Budget
from memory.audience import Place
from memory.sql.messages import Transcript
from memory.sql.summaries import MOST_BEHIND, ConversationSummaries, owner_of
from memory.text import sentences

ENOUGH = 3
"""Messages that state something, which are consolidated together with all between them."""
LONGEST = timedelta(hours=12)
"""A statement waits for others at most this long."""
_QUESTION_MARKS = (
    "?",
    "？",
    "؟",
    "⸮",
    "՞",
)  # the Greek one is a semicolon, so Greek questions count as statements
_FEWEST_WORDS = 2
_CLAUSE_END = re.compile(r"[,;:]\s+|[،؛、，；：–—]\s*")
_CLAUSE_WORDS, _CLAUSE_LETTERS = 3, 4


@dataclass(frozen=True)
class Waiting:
    summaries: ConversationSummaries
    transcript: Transcript
    clock: Callable[[], datetime]
    window: int
    """How many recent messages a prompt holds …"""
    window_budget: Budget
    """… and how much of them."""

    async def until(self, conversation: str, user: str, place: Place) -> datetime | Literal["nothing"] | None:
        """Return until when the messages may wait at most, or "nothing" if none of them states something.

        Returns None if they are to be consolidated now: at the beginning of a conversation, if there are
        enough, if some leave the prompt's window with the next exchange, if they have waited for long, if the
        summary is to be written again, or if the user has gone on elsewhere, where the prompt lacks them.
        """
        owner, now = owner_of(user, place), self.clock()
        active = await self.summaries.of(conversation, owner, now)
        after = active.covered if active else 0
        lines = await self.transcript.following(conversation, owner, after, MOST_BEHIND, most=MOST_BEHIND)
        if (active and active.withheld) or self.leave_the_window([line.message.text for line in lines]):
            return None
        stated = [line for line in lines if line.message.role == "user" and states(line.message.text)]
        if not stated:
            return "nothing"
        until = stated[0].message.sent_at + LONGEST
        if after == 0 or len(stated) >= ENOUGH or until <= now:
            return None
        own = [line.seq for line in lines if line.user == user]
        return None if own and await self.transcript.went_on(user, conversation, own[-1]) else until

    def leave_the_window(self, texts: Sequence[str]) -> bool:
        said = "\n".join(texts)
        return len(texts) + 2 > self.window or 2 * self.window_budget.cost(said) > self.window_budget.amount


def states(text: str) -> bool:
    """Return whether the message may state something, by its form alone: whether a sentence is neither a
    question nor a single word, or is a question with another clause. Sentences with other than ASCII letters
    count whatever their length, since not all scripts separate words."""
    return any(map(_states, sentences(text)))


def _states(sentence: str) -> bool:
    if not sentence.rstrip("\"'”’»)]").endswith(_QUESTION_MARKS):
        return _words(sentence) >= _FEWEST_WORDS or not sentence.isascii()
    whole = [
        clause
        for clause in _CLAUSE_END.split(sentence)
        if _words(clause) >= _CLAUSE_WORDS or (len(clause) >= _CLAUSE_LETTERS and not clause.isascii())
    ]
    return len(whole) > 1  # "I moved to Lyon, where is a doctor?"


def _words(text: str) -> int:
    return len(re.findall(r"\w+", text))
