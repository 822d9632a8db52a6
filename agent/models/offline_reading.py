"""What the offline stand-in makes of a message: an English command, a question by its mark or first word, or
a statement; and how it ranks what it may quote. It knows no word's meaning."""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from memory.people.due_dates import read_time
from memory.text import sentences
from memory.text.names import fold

_LONGEST_COMMAND = 300
LONGEST_STATEMENT = 1_500
"""Characters of one fact. A longer message is a document, and stays in the transcript only."""
_COMMANDS = {
    "crisis": r".*\b(?:kill(?:ing)? myself|suicid(?:e|al)|(?:want|going) to die|end my life|hurt myself)\b",
    "add_task": r"(?:remind me|(?:don['’]t forget|remember) to|add (?:a )?(?:task|to-?do):?)\s+(?!.*\?)",
    "finish_task": r"done\W*$|done:\s*|i(?:['’]ve| have) (?:done|finished)\s+",
    "list_tasks": r"(?:(?:what are|show(?: me)?|list) )?my (?:open )?(?:tasks?|to-?dos?)\W*$",
    "list_memories": r"what (?:do|have) (?:you|i) (?:know|remember|told)(?: you)?(?: about me)?\W*$",
    "forget": r"(?:forget|delete|erase)\s+(?:that\s+|about\s+)?",
    "question": r"(?:who|what|where|when|why|how|which|do|does|did|is|are|was|can)\b|.*[?？؟]\s*$",
}
"""How a message of each kind begins or, with ``$``, reads; the first that fits counts."""
_PATTERNS = {kind: re.compile(rf"(?:please )?(?:{text})", re.I | re.S) for kind, text in _COMMANDS.items()}
_TIME_BEGINS = re.compile(r"(?:on|at|by|in|next|today|tonight|tomorrow|\d|\w+day\b)", re.IGNORECASE)
_NAMED = re.compile(r"\b[Mm]y name is ([A-Z][\w'’-]+)(?=[.,;!]|\s+and\b|\s*$)")


class Sentence(NamedTuple):
    kind: str
    """A kind of command, `question`, `statement`, or `remark`: less than three words."""
    text: str
    """As it was written; of a task or what is to be forgotten, its name."""
    due: datetime | None = None


def read_message(text: str, now: datetime | None = None) -> Sentence:
    """Return what kind of message it is. `now` is aware, in the zone in which due dates are meant; without it
    no due date is read."""
    flat = " ".join(text.split())
    if len(flat) <= _LONGEST_COMMAND:
        for kind, pattern in _PATTERNS.items():
            if found := pattern.match(flat):
                rest = flat[found.end() :].strip(" .!")
                if kind == "add_task":
                    return Sentence(kind, *find_due(rest, now))
                return Sentence(kind, rest if kind in ("finish_task", "forget") else flat)
    enough = len(re.findall(r"\w+", flat)) > 2 or not flat.isascii()
    if enough and len(text) > LONGEST_STATEMENT:
        return Sentence("too long", text)
    return Sentence("statement" if enough else "remark", text)


def statements(text: str) -> list[str]:
    """Return the sentences of a message that state something."""
    return [sentence for sentence in sentences(text) if read_message(sentence).kind == "statement"]


def stated_name(text: str) -> str | None:
    """Return the name in "my name is Mickael"; None unless it is unmistakable."""
    found = _NAMED.search(text)
    return found[1] if found else None


def find_due(text: str, now: datetime | None) -> tuple[str, datetime | None]:
    """Return what is left, and the due time, of "call Ana tomorrow at 9" and "tomorrow at 9 to call Ana"."""
    words = text.split()
    for size in range(min(len(words) - 1, 8) if now else 0, 0, -1):
        for when, rest in ((words[-size:], words[:-size]), (words[:size], words[size:])):
            said = " ".join(when).strip(" ,.!")
            with suppress(ValueError):
                if now and _TIME_BEGINS.match(said):
                    return _task(rest), read_time(re.sub(r"^by\s+", "", said), now.tzinfo, now)
    return _task(words), None


def _telling(text: str) -> set[str]:
    """Return the words of three characters or more as they are compared: their first five letters."""
    return {
        fold(word).rstrip("s")[:5] for word in re.findall(r"\w+", text) if len(word) > 2 or word.isdigit()
    }


def by_likeness(question: str, texts: Sequence[str]) -> list[int]:
    """Return the positions of the texts that share words with the question, the best first. A word counts
    less the more texts have it."""
    there = [_telling(text) for text in texts]
    common = Counter(word for words in there for word in words)
    asked = _telling(question)
    scores = [sum(1 / common[word] for word in asked & words) for words in there]
    return sorted((at for at, score in enumerate(scores) if score), key=lambda at: -scores[at])


def _task(words: Sequence[str]) -> str:
    return re.sub(r"^(?:to|about|that)\s+", "", " ".join(words), flags=re.IGNORECASE).strip(" .,:")
