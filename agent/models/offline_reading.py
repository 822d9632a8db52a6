"""What the offline stand-in reads from the prompt and the messages, without understanding their language.

`read_message` gives each sentence a kind: a fixed English command, a greeting, a request to forget, words of
danger to oneself, a question by its mark or first word. Everything else is a statement, kept in the person's
own words; so is what is too long to be a command. The words and patterns are in `offline.toml`.
"""

import json
import re
import tomllib
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from memory.people.due_dates import read_time
from memory.text import sentences
from memory.text.names import fold

_NAMED = re.compile(r"\b[Mm]y name is ([A-Z][\w'’-]+)(?=[.,;!]|\s+and\b|\s*$)")
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
_WORD = re.compile("[\u30a0-\u30ff]+|[\u3400-\u9fff]|[\u0e00-\u0eff]{2}|[^\\W_\u3040-\u9fff\u0e00-\u0eff]+")
_ENDING = re.compile(r"(?:ing|ed|es|en|s|e|d|n)$")

_SETTING = re.compile(r"^(Now|Speaking now|Where): (.+)$", re.M)
_FACT = re.compile(r"^> - \[(?:FACT|PREFERENCE|INSIGHT)\] (.+) \((\d+ \w+ \d+)[^()]*\) \[[\w-]+\]$", re.M)
_TASK = re.compile(r"^> - \[task (\S+)\] (.+) \((?:open|in_progress)(?:, due [^()]*)?\)$", re.M)
_NAME = re.compile(r"^> (?:.*; )?name: ([^;\n]+)", re.M)
_ATTRIBUTED = re.compile(r"(.{1,80}?) said: “(.*)”", re.S)
_LONGEST_SENTENCE = 500
_LONGEST_READ = 4_000
"""Characters. What is longer is a statement whatever it says: no pattern runs over it, since some take the
square of its length."""
_REMINDER = re.compile(r"⏰[^“\n]*“([^”\n]+)”")


class Sentence(NamedTuple):
    kind: str
    """A kind or saying of `offline.toml`, statement, remark, add_task, finish_task or danger."""
    text: str
    """As it was written; of a task, what is to be done."""
    due: datetime | None = None
    language: str = "en"
    """Of the answer to words of danger."""


class Call(NamedTuple):
    name: str
    arguments: str

    @classmethod
    def of(cls, name: str, /, **arguments: Any) -> "Call":
        """The call, with its arguments as JSON with sorted keys: equal calls compare equal."""
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
    """The facts of the prompt, which no tool returns again. Of their times the day is known."""
    sentences: list[Sentence]
    reminded_of: str
    """The task of the reminder that the person answers; empty if they answer none."""
    results: dict[Call, dict[str, Any]]
    """What the tool calls of this turn returned."""
    rounds: int
    """How many rounds of tool calls this turn had."""

    def of_kind(self, kind: str) -> list[Sentence]:
        return [sentence for sentence in self.sentences if sentence.kind == kind]

    def returned(self, key: str) -> list[Any]:
        """The entries under this key of all results; those of get_recent_memories, in order, come first."""
        found = (self.results[call].get(key) or [] for call in sorted(self.results))
        return [entry for entries in found for entry in entries]


def read_turn(instructions: str, items: list[dict[str, Any]]) -> Turn:
    """From the prompt and the input items of the Agents SDK."""
    last = max((at for at, item in enumerate(items) if item.get("role") == "user"), default=-1)
    said = [(item["role"], _text(item.get("content"))) for item in items[: last + 1] if "role" in item]
    made = ["", *(item.get("type") for item in items[last + 1 :])]
    setting = dict(_SETTING.findall(instructions))
    person = instructions.rpartition("\n## User context\n")[2].partition("\n## ")[0]
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
        quotes=[read_quote(fact, _day(on, now), speaker) for fact, on in _FACT.findall(person)],
        sentences=read_message(heard, now),
        reminded_of=reminder[1] if reminder else "",
        results=_results(items[last + 1 :]),
        rounds=sum(one != "function_call" == two for one, two in pairwise(made)),
    )


def _text(content: Any) -> str:
    """The text of a message or of a tool's output, which may be a list of parts."""
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if "text" in part)
    return str(content)


def _results(items: list[dict[str, Any]]) -> dict[Call, dict[str, Any]]:
    outputs = {item.get("call_id"): _text(item["output"]) for item in items if "output" in item}
    return {
        Call.of(item["name"], **_read_result(item["arguments"])): _read_result(outputs[item["call_id"]])
        for item in items
        if item.get("type") == "function_call" and item["call_id"] in outputs
    }


def _read_result(output: str) -> dict[str, Any]:
    """A JSON object of a call or of its result; any other text is what the SDK says of a tool that failed."""
    with suppress(ValueError, RecursionError):
        if isinstance(found := json.loads(output), dict):
            return found
    return {"error": output}


def read_quote(content: str, said_at: datetime | None, speaker: str) -> Quote:
    """A fact as a quotation; one from a shared place names who said it."""
    if found := _ATTRIBUTED.fullmatch(content):
        return Quote(found[2], said_at, found[1] if found[1] != speaker else "")
    return Quote(content, said_at)


def _now(text: str) -> datetime:
    """The time in the prompt, in the person's zone."""
    if found := re.match(r"\w+ (\d+ \w+ \d+, \d+:\d+)(?: \(([\w+/-]+), )?", text):
        zone = ZoneInfo(found[2]) if found[2] else UTC
        return datetime.strptime(found[1], "%d %B %Y, %H:%M").replace(tzinfo=zone)
    return datetime.now(UTC)


def _day(text: str, now: datetime) -> datetime:
    """The beginning of the day of a fact in the prompt, in the person's zone."""
    return datetime.strptime(text, "%d %b %Y").replace(tzinfo=now.tzinfo)


@cache
def phrases() -> dict[str, Any]:
    text = Path(__file__).with_name("offline.toml").read_text("utf-8")
    return tomllib.loads(text.replace("\\\n", ""))


@cache
def pattern(name: str) -> re.Pattern[str]:
    known = phrases()["patterns"] | phrases()["kinds"]
    return re.compile("|".join(known[name]), re.IGNORECASE)


def read_message(text: str, now: datetime | None = None) -> list[Sentence]:
    """The sentences by kind, in order; neighbouring statements are one. `now` is aware, in the zone in which
    due dates are meant; without it no due date is read."""
    flat = unicodedata.normalize("NFC", text)
    for language, danger in phrases()["danger"].items():
        if re.search(danger, flat, re.IGNORECASE):
            return [Sentence("danger", text, language=language)]
    if len(flat) > _LONGEST_READ:
        return [Sentence("statement", flat)]
    found: list[Sentence] = []
    for line in flat.splitlines():
        parts = [sentence for part in sentences(line) for sentence in _read_sentence(part, now)]
        for number, sentence in enumerate(parts):
            continues = sentence.kind == "statement" or (number and sentence.kind == "remark")
            if continues and found and found[-1].kind == "statement":
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


def deed(text: str) -> str:
    """What "I've called the dentist" says was done; empty for other sentences and for those that deny."""
    found = pattern("deed").match(text.rstrip(" .!"))
    return found["deed"] if found and not pattern("not_done").search(text) else ""


def _read_sentence(text: str, now: datetime | None) -> Iterator[Sentence]:
    if len(text) > _LONGEST_SENTENCE:
        yield Sentence("statement", text)
        return
    if asked := pattern("asked_to_keep").match(text):
        text = text[asked.end() :].rstrip("? ")
    text = pattern("keep").sub("", text)
    opening = re.match(r"([^\W\d_][^,!.。！？?]{1,28})[,!.。！]\s*(?=\S)", text)
    if opening and _saying(opening[1]) not in ("", "remark"):
        yield Sentence(_saying(opening[1]), opening[1])
        yield from _read_sentence(text[opening.end() :], now)
        return
    bare = text.strip(".!…。！ ")
    plain = pattern("polite").sub("", bare)
    command = re.sub(r"(?<![\s,])[\s,]+(?:please|bitte|thanks)$", "", plain.rstrip("? "), flags=re.IGNORECASE)
    if (task := pattern("add_task").match(command)) and not pattern("tell_me").match(command):
        yield Sentence("add_task", *find_due((task["what"] or task["item"] or "").strip(" :,-"), now))
    elif done := pattern("finish_task").match(command):
        yield Sentence("finish_task", done["task"] or done["other"] or "")
    else:
        forms = {"list_tasks": command, "question": bare if pattern("question").search(bare) else text}
        kinds = (kind for kind in phrases()["kinds"] if pattern(kind).search(forms.get(kind, plain)))
        kind = _saying(bare) or next(kinds, "statement" if _is_statement(bare) else "remark")
        yield Sentence("question" if kind == "tell_me" else kind, text)


def _saying(text: str) -> str:
    """The kind of a whole saying such as "good morning Hachi" or "merci"; empty for anything else."""
    said = " ".join(re.findall(r"\w+", re.sub(r"['’]", "", text.casefold())))
    sayings = phrases()["sayings"]
    kinds = (kind for kind in sayings if re.fullmatch(f"(?:{sayings[kind]}){sayings['called']}", said))
    return next(kinds, "") if said else "remark"


def _is_statement(bare: str) -> bool:
    """Whether there is enough in it to be worth keeping."""
    words = re.findall(r"\w+(?:['’]\w+)*", re.sub(r"(?<!\S)\S+?://\S+", "", bare))
    if pattern("reaction").match(bare) and not pattern("own").search(bare):
        return False
    enough = 2 if words and words[0].casefold() in ("i'm", "i’m") else 3
    return len(words) >= enough or len(_UNSPACED.findall(bare)) >= 5


def find_due(text: str, now: datetime | None) -> tuple[str, datetime | None]:
    """(what is left, due) of "call Ana tomorrow at 9" and "tomorrow at 9 to call Ana". The words must say
    when by themselves: the sun in "buy cream for the sun" is not Sunday."""
    words = text.split()
    for size in range(min(len(words) - 1, 8) if now else 0, 0, -1):
        for when, rest in ((words[-size:], words[:-size]), (words[:size], words[size:])):
            said = " ".join(when).strip(" ,.!")
            with suppress(ValueError):
                if now and pattern("timelike").match(said):
                    due = read_time(re.sub(r"^by\s+", "", said), now.tzinfo, now)
                    return _task(" ".join(rest)), due
    return _task(text), None


def _task(text: str) -> str:
    return re.sub(r"^(?:to|about|that|of|for)\s+", "", text, flags=re.IGNORECASE).strip(" .,:")


def named_to_forget(text: str) -> str:
    """What a request names: "my PIN" of "please forget my PIN"."""
    return _task(pattern("forget").sub("", pattern("polite").sub("", text)))


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
        plain = fold(word)
        low = groups.get(word.casefold()) or groups.get(plain) or plain
        if low in ("name", "old"):
            found.setdefault(low, 1.0)
            continue
        capital = bool(before) and word[0].isupper() and word.isalpha()
        named = capital and len(word) > 1  # a friend may be called Will, April or May
        common_word = word.casefold() in common and not named
        if not common_word and (len(low) > 1 or low.isdigit() or _UNSPACED.match(low)):
            weight = float(min(max(len(low), 4), 8) if capital or len(low) > 2 else len(low))
            found[low] = 2 * weight if capital or pattern("possessive").fullmatch(before) else weight
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
    beginning = max(4, ceil(0.7 * len(long)))
    stems = {_ENDING.sub("", word) if len(word) > 3 else word for word in (one, other)}
    return len(stems) == 1 or short[:beginning] == long[:beginning]


def passage(question: str, text: str) -> str:
    """The document's text from the sentence on that shares most with the question; empty if none does."""
    parts = re.split(r"(?<=[.!?。])\s+|\n+", text[:4_000])
    scores = [share_found(question, part) for part in parts]
    best = max(scores)
    return " ".join(parts[scores.index(best) :]) if best > 0 else ""
