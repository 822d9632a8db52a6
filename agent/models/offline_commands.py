"""What the offline stand-in can tell from a message without understanding its language.

`read_message` splits a message into sentences and gives each a kind: a few fixed English commands, greetings,
requests to forget, words of danger to oneself, and questions by their mark or first word. Everything else is
a statement, kept in the person's own words. The words stand in `offline.toml`.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from memory.people.due_dates import read_time
from memory.text import sentences

KINDS_BY_PATTERN = ("list_tasks", "forget", "list_memories", "tell_me", "about_me", "request", "question")
"""In the order in which they are tried. What is to be told is a question."""

_NAMED = re.compile(r"\b[Mm]y name is ([A-Z][\w'’-]+)(?=[.,;!]|\s+and\b|\s*$)")
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
_WORD = re.compile("[\u30a0-\u30ff]+|[\u3400-\u9fff]|[\u0e00-\u0eff]{2}|[^\\W_\u3040-\u9fff\u0e00-\u0eff]+")
_ENDING = re.compile(r"(?:ing|ed|es|en|s|e|d|n)$")


@dataclass(frozen=True, slots=True)
class Sentence:
    kind: str
    """statement, question, remark, request, a greeting or command of `offline.toml`, add_task, finish_task or
    danger."""
    text: str
    """As it was written; of a task, what is to be done."""
    due: datetime | None = None
    language: str = "en"
    """Of the answer to words of danger."""


@cache
def phrases() -> dict[str, Any]:
    text = Path(__file__).with_name("offline.toml").read_text("utf-8")
    return tomllib.loads(text.replace("\\\n", ""))


@cache
def pattern(name: str) -> re.Pattern[str]:
    return re.compile("|".join(phrases()["patterns"][name]), re.IGNORECASE)


def read_message(text: str, now: datetime | None = None) -> list[Sentence]:
    """The sentences by kind, in order; neighbouring statements are one. `now` is aware, in the zone in which
    due dates are meant; without it none is read."""
    flat = unicodedata.normalize("NFC", text)
    for language, danger in phrases()["danger"].items():
        if re.search(danger, flat, re.IGNORECASE):
            return [Sentence("danger", text, language=language)]
    found: list[Sentence] = []
    for line in flat.splitlines():
        parts = [sentence for part in sentences(line) for sentence in _read_sentence(part, now)]
        for number, sentence in enumerate(parts):
            goes_on = sentence.kind == "statement" or (number and sentence.kind == "remark")
            if goes_on and found and found[-1].kind == "statement":
                between = "" if found[-1].text.endswith(("。", "！", "？")) else " "
                found[-1] = Sentence("statement", f"{found[-1].text}{between}{sentence.text}")
            else:
                found.append(sentence)
    return found


def statements(text: str) -> list[str]:
    """What the message states, in the person's words."""
    return [sentence.text for sentence in read_message(text) if sentence.kind == "statement"]


def stated_name(text: str) -> str | None:
    """The name in "my name is Mickael"; None unless it is unmistakable."""
    found = _NAMED.search(text)
    return found[1] if found else None


def deed(text: str) -> str | None:
    """What "I've called the dentist" says was done; None for other sentences and for those that deny."""
    found = pattern("deed").match(text.rstrip(" .!"))
    return found["deed"] if found and not pattern("not_done").search(text) else None


def _read_sentence(text: str, now: datetime | None) -> Iterator[Sentence]:
    text = pattern("keep").sub("", text)
    opening = re.match(r"([^\W\d_][^,!.。！？?]{1,28})[,!.。！]\s*(?=\S)", text)
    if opening and (kind := _saying(opening[1])) and kind != "remark":
        yield Sentence(kind, opening[1])
        yield from _read_sentence(text[opening.end() :], now)
        return
    bare = text.strip(".!…。！ ")
    plain = pattern("polite").sub("", bare)
    command = re.sub(r"[\s,]+(?:please|bitte|thanks)$", "", plain.rstrip("? "), flags=re.IGNORECASE)
    if (task := pattern("add_task").match(command)) and not pattern("tell_me").match(command):
        yield Sentence("add_task", *find_due((task["what"] or task["item"] or "").strip(" :,-"), now))
    elif done := pattern("finish_task").match(command):
        yield Sentence("finish_task", done["task"] or done["other"] or "")
    else:
        yield Sentence(_saying(bare) or _kind(text, bare, plain, command), text)


def _kind(text: str, bare: str, plain: str, command: str) -> str:
    for kind in KINDS_BY_PATTERN:
        said = {"list_tasks": (command,), "question": (text, bare)}.get(kind, (plain,))
        if any(pattern(kind).search(form) for form in said):
            return "question" if kind == "tell_me" else kind
    return "statement" if _is_statement(bare) else "remark"


def _saying(text: str) -> str | None:
    """The kind of a whole saying such as "good morning Hachi" or "merci"."""
    said = " ".join(re.findall(r"\w+", re.sub(r"['’]", "", text.casefold())))
    sayings = phrases()["sayings"]
    kinds = (kind for kind in sayings if re.fullmatch(f"(?:{sayings[kind]}){sayings['called']}", said))
    return next(kinds, None) if said else "remark"


def _is_statement(bare: str) -> bool:
    """Whether there is enough in it to be worth keeping."""
    words = re.findall(r"\w+(?:['’]\w+)*", re.sub(r"\S+://\S+", "", bare))
    if pattern("reaction").match(bare) and not pattern("own").search(bare):
        return False
    short = len(words) == 2 and words[0].casefold() in ("i'm", "i’m")
    return short or len(words) >= 3 or len(_UNSPACED.findall(bare)) >= 5


def find_due(text: str, now: datetime | None) -> tuple[str, datetime | None]:
    """(what is left, due) of "call Ana tomorrow at 9" and "tomorrow at 9 to call Ana". The words must say
    when by themselves: the sun in "buy cream for the sun" is not Sunday."""
    words = text.split()
    for size in range(min(len(words) - 1, 8), 0, -1):
        for when, rest in ((words[-size:], words[:-size]), (words[:size], words[size:])):
            said = " ".join(when).strip(" ,.!")
            if now and pattern("timelike").match(said):
                try:
                    due = read_time(re.sub(r"^by\s+", "", said), now.tzinfo, now)
                except ValueError:
                    continue
                return _task(" ".join(rest)), due
    return _task(text), None


def _task(text: str) -> str:
    return re.sub(r"^(?:to|about|that|of|for)\s+", "", text, flags=re.IGNORECASE).strip(" .,:")


# Comparing words -----------------------------------------------------------------------------------------


@cache
def _common() -> frozenset[str]:
    return frozenset(phrases()["words"]["common"].split())


def content_words(text: str) -> dict[str, float]:
    """The telling words with their weights: long words weigh more, words with a capital twice as much. Where
    words are written without spaces: kanji, words in katakana, and pairs of Thai characters."""
    found: dict[str, float] = {}
    for position, word in enumerate(_WORD.findall(re.sub(r"['’]s\b", "", text))):
        split = unicodedata.normalize("NFD", word.casefold())
        low = "".join(letter for letter in split if not unicodedata.combining(letter))
        if word.casefold() not in _common() and (len(low) > 1 or low.isdigit() or _UNSPACED.match(low)):
            weight = min(len(low), 8)
            found[low] = max(8.0, 2.0 * weight) if position and word[0].isupper() else weight
    return found


def share_found(question: str, text: str) -> float:
    """How much of what the question asks for is in the text, by weight, from 0 to 1."""
    asked, there = content_words(question), content_words(text)
    found = sum(weight for word, weight in asked.items() if any(_alike(word, other) for other in there))
    return found / sum(asked.values()) if asked else 0.0


def _alike(one: str, other: str) -> bool:
    """Whether two words are forms of one: allergic and allergy, lives and living, הכלב and כלב."""
    short, long = sorted((one, other), key=len)
    if one == other or not short.isascii():
        return one == other or (len(short) >= 3 and len(long) - len(short) <= 2 and short in long)
    shared = next(
        (at for at, pair in enumerate(zip(short, long, strict=False)) if pair[0] != pair[1]), len(short)
    )
    stems = {_ENDING.sub("", word) if len(word) > 3 else word for word in (one, other)}
    return len(stems) == 1 or (shared >= 4 and shared >= 0.7 * len(long))
