"""What the offline stand-in reads from the prompt and the messages, without understanding their language.

`read_message` splits a message into sentences and gives each a kind: a few fixed English commands, greetings,
requests to forget, words of danger to oneself, and questions by their mark or first word. Everything else is
a statement, kept in the person's own words. The words and patterns are in `offline.toml`.
"""

import json
import re
import tomllib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from memory.people.due_dates import read_time
from memory.text import sentences

KINDS_BY_PATTERN = (
    "list_tasks", "forget", "list_memories", "tell_me", "date", "about_me", "remind", "request", "question"
)  # fmt: skip
"""In the order in which they are tried. "Tell me where …" is a question."""

_NAMED = re.compile(r"\b[Mm]y name is ([A-Z][\w'’-]+)(?=[.,;!]|\s+and\b|\s*$)")
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
_WORD = re.compile("[\u30a0-\u30ff]+|[\u3400-\u9fff]|[\u0e00-\u0eff]{2}|[^\\W_\u3040-\u9fff\u0e00-\u0eff]+")
_ENDING = re.compile(r"(?:ing|ed|es|en|s|e|d|n)$")

_SETTING = re.compile(r"^(Now|Speaking now|Where): (.+)$", re.M)
_FACT = re.compile(r"^> - \[(?:FACT|PREFERENCE|INSIGHT)\] (.+?)(?: \(importance: [\d.]+\))?$", re.M)
_TASK = re.compile(r"^> - \[task (\S+)\] (.+) \((?:open|in_progress)(?:, due [^()]*)?\)$", re.M)
_NAME = re.compile(r"^> (?:.*; )?name: ([^;\n]+)", re.M)
_ATTRIBUTED = re.compile(r"(.{1,80}?) said: “(.*)”", re.S)
_REMINDER = re.compile(r"⏰[^“\n]*“([^”\n]+)”")


class Sentence(NamedTuple):
    kind: str
    """A pattern or saying of `offline.toml`, statement, remark, add_task, finish_task or danger."""
    text: str
    """As it was written; of a task, what is to be done."""
    due: datetime | None = None
    language: str = "en"
    """Of the answer to words of danger."""


class Call(NamedTuple):
    """A tool call. The arguments are JSON with sorted keys, so equal calls compare equal."""

    name: str
    arguments: str

    @classmethod
    def of(cls, name: str, **arguments: Any) -> "Call":
        return cls(name, json.dumps(arguments, ensure_ascii=False, sort_keys=True))


@dataclass(frozen=True, slots=True)
class Quote:
    """Something that was said or noted, word for word."""

    text: str
    said_at: datetime | None = None
    author: str = ""
    """Empty for the person who speaks now."""

    @property
    def key(self) -> str:
        return " ".join([self.author, *re.findall(r"\w+", self.text.casefold())])


@dataclass(frozen=True, slots=True)
class Turn:
    speaker: str
    shared: bool
    """Whether others read along."""
    now: datetime
    name: str
    """What the person is called; empty if unknown."""
    tasks: dict[str, str]
    """Open tasks of the prompt: description by id."""
    quotes: list[Quote]
    """The facts of the prompt, which no search returns again."""
    sentences: list[Sentence]
    reminded_of: str
    """The task of the reminder that the person answers; empty if they answer none."""
    results: dict[Call, dict[str, Any]]
    """What the tool calls of this turn returned."""

    def of_kind(self, kind: str) -> list[Sentence]:
        return [sentence for sentence in self.sentences if sentence.kind == kind]

    def returned(self, key: str) -> list[dict[str, Any]]:
        """The entries under this key of all results; those of get_recent_memories, in order, come first."""
        found = (self.results[call].get(key) or [] for call in sorted(self.results))
        return [entry for entries in found for entry in entries if isinstance(entry, dict)]


def last_from_user(items: list[dict[str, Any]]) -> int:
    """The position of the message to answer, or -1; after it come the tool calls of this turn."""
    return max((at for at, item in enumerate(items) if item.get("role") == "user"), default=-1)


def read_turn(instructions: str, items: list[dict[str, Any]]) -> Turn:
    """From the prompt and the input items of the Agents SDK."""
    last = last_from_user(items)
    said = [(item["role"], _text(item.get("content"))) for item in items[: last + 1] if "role" in item]
    setting = dict(_SETTING.findall(instructions))
    person = instructions.rpartition("\n## About the person speaking\n")[2].partition("\n## ")[0]
    speaker, now = setting.get("Speaking now", ""), _now(setting.get("Now", ""))
    shared = setting.get("Where", "").endswith("where others read along")
    heard = said[-1][1].removeprefix(f"{speaker}: " if shared else "") if said else ""
    reminder = _REMINDER.match(said[-2][1]) if len(said) > 1 and said[-2][0] == "assistant" else None
    return Turn(
        speaker=speaker,
        shared=shared,
        now=now,
        name=stated_name(heard) or next(iter(_NAME.findall(person)), ""),
        tasks=dict(_TASK.findall(person)),
        quotes=[read_quote(fact, None, speaker) for fact in _FACT.findall(person)],
        sentences=read_message(heard, now),
        reminded_of=reminder[1] if reminder else "",
        results=_results(items[last + 1 :]),
    )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part)


def _results(items: list[dict[str, Any]]) -> dict[Call, dict[str, Any]]:
    outputs = {item.get("call_id"): _text(item.get("output")) for item in items if "output" in item}
    made = [item for item in items if item.get("type") == "function_call" and item["call_id"] in outputs]
    return {
        Call.of(item["name"], **json.loads(item["arguments"])): _read_result(outputs[item["call_id"]])
        for item in made
    }


def _read_result(output: str) -> dict[str, Any]:
    """A tool's JSON object; any other text is what the SDK says of a tool that failed."""
    try:
        found = json.loads(output)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"error": output}


def read_quote(content: str, said_at: datetime | None, speaker: str) -> Quote:
    """A fact as a quotation; one from a shared place names who said it."""
    if found := _ATTRIBUTED.fullmatch(content):
        return Quote(found[2], said_at, found[1] if found[1] != speaker else "")
    return Quote(content, said_at)


def _now(text: str) -> datetime:
    """The time in the prompt, in the person's zone."""
    found = re.match(r"\w+ (\d+ \w+ \d+, \d+:\d+)(?: \(([\w+/-]+), )?", text)
    if found is None:
        return datetime.now(UTC)
    zone = ZoneInfo(found[2]) if found[2] else UTC
    return datetime.strptime(found[1], "%d %B %Y, %H:%M").replace(tzinfo=zone)


@cache
def phrases() -> dict[str, Any]:
    text = Path(__file__).with_name("offline.toml").read_text("utf-8")
    return tomllib.loads(text.replace("\\\n", ""))


@cache
def pattern(name: str) -> re.Pattern[str]:
    return re.compile("|".join(phrases()["patterns"][name]), re.IGNORECASE)


def read_message(text: str, now: datetime | None = None) -> list[Sentence]:
    """The sentences by kind, in order; neighbouring statements are one. `now` is aware, in the zone in which
    due dates are meant; without it no due date is read."""
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
    if asked := pattern("asked_to_keep").match(text):
        text = text[asked.end() :].rstrip("? ")
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
def _words() -> tuple[frozenset[str], dict[str, str]]:
    """The words that tell nothing, and for each word with a group ("moved") the group's name ("live")."""
    words = phrases()["words"]
    groups = {word: name for name, group in words["alike"].items() for word in group.split()}
    return frozenset(words["common"].split()), groups


def content_words(text: str) -> dict[str, float]:
    """The telling words with their weights. Long words weigh more; words with a capital, and what is called
    mine, twice as much; names and ages next to nothing. Where words are written without spaces: kanji, words
    in katakana, and pairs of Thai characters."""
    common, groups = _words()
    found: dict[str, float] = {"old": 1.0} if pattern("age").search(text) else {}
    for before, word in pairwise(["", *_WORD.findall(re.sub(r"['’]s\b", "", text))]):
        split = unicodedata.normalize("NFD", word.casefold())
        plain = "".join(letter for letter in split if not unicodedata.combining(letter))
        low = groups.get(word.casefold()) or groups.get(plain) or plain
        if low in ("name", "old"):
            found.setdefault(low, 1.0)
        elif word.casefold() not in common and (len(low) > 1 or low.isdigit() or _UNSPACED.match(low)):
            weight = float(min(max(len(low), 4), 8) if len(low) > 2 else len(low))
            if before and word[0].isupper():
                found[low] = max(8.0, 2 * weight)
            else:
                found[low] = 2 * weight if pattern("possessive").fullmatch(before) else weight
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


def passage(question: str, text: str) -> str:
    """The document's text from the sentence on that shares most with the question; empty if none does."""
    parts = re.split(r"(?<=[.!?。])\s+|\n+", text[:4_000])
    scores = [share_found(question, part) for part in parts]
    best = max(scores)
    return " ".join(parts[scores.index(best) :]) if best > 0 else ""
