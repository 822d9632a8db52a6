"""What the offline stand-in knows of a turn, which tools it calls and what it says.

A `Turn` is read from the prompt and the tool results. What it says stands in `offline.toml`.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from agent.models.offline_commands import (
    Sentence,
    content_words,
    deed,
    pattern,
    phrases,
    read_message,
    share_found,
    stated_name,
    statements,
)

RECENT, MOST_LISTED, MOST_QUOTED = 50, 20, 3
LONGEST_QUOTE = 300
LONGEST_STATEMENT = 1_500
"""Characters of one fact. A longer message is a document, and stays in the transcript only."""

_SETTING = re.compile(r"^(Now|Speaking now|Where): (.+)$", re.M)
_FACT = re.compile(r"^> - \[(?:FACT|PREFERENCE|INSIGHT)\] (.+?)(?: \(importance: [\d.]+\))?$", re.M)
_TASK = re.compile(r"^> - \[task (\S+)\] (.+) \((?:open|in_progress)(?:, due [^()]*)?\)$", re.M)
_NAME = re.compile(r"^> (?:.*; )?name: ([^;\n]+)", re.M)
_REMINDER = re.compile(r"⏰[^“\n]*“([^”\n]+)”")
_ATTRIBUTED = re.compile(r"(.{1,80}?) said: “(.*)”", re.S)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; equal if the tool and the arguments are."""

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
    quotes: tuple[Quote, ...]
    """The facts of the prompt, which no search brings again."""
    sentences: tuple[Sentence, ...]
    reminded_of: str
    """The task of a reminder that the person answers; empty if they answer none."""
    results: dict[Call, dict[str, Any]]
    """What the tool calls of this turn brought."""

    def of_kind(self, kind: str) -> list[Sentence]:
        return [sentence for sentence in self.sentences if sentence.kind == kind]

    def brought(self, key: str) -> list[dict[str, Any]]:
        """The entries that tools brought under this key; the newest memories, in order, come first."""
        found = (self.results[call].get(key) or [] for call in sorted(self.results, key=_name_of))
        return [entry for entries in found for entry in entries if isinstance(entry, dict)]


def _name_of(call: Call) -> str:
    return call.name


def read_turn(instructions: str, said: list[tuple[str, str]], results: dict[Call, dict[str, Any]]) -> Turn:
    """`said` are (role, text) of the messages, the last the one to answer."""
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
        quotes=tuple(_quote(fact, None, speaker) for fact in _FACT.findall(person)),
        sentences=tuple(read_message(heard, now)),
        reminded_of=reminder[1] if reminder else "",
        results=results,
    )


def _now(text: str) -> datetime:
    """The moment that the prompt names, in the person's zone."""
    found = re.match(r"\w+ (\d+ \w+ \d+, \d+:\d+)(?: \(([\w+/-]+), )?", text)
    if found is None:
        return datetime.now(UTC)
    zone = ZoneInfo(found[2]) if found[2] else UTC
    return datetime.strptime(found[1], "%d %B %Y, %H:%M").replace(tzinfo=zone)


def _quote(content: str, said_at: datetime | None, speaker: str) -> Quote:
    """A fact as a quotation; one from a shared place names who said it."""
    if found := _ATTRIBUTED.fullmatch(content):
        return Quote(found[2], said_at, found[1] if found[1] != speaker else "")
    return Quote(content, said_at)


def wanted(turn: Turn) -> Iterator[Call]:
    """Every call this turn needs as far as the results so far tell, those already made among them."""
    yield from (Call.of("remember", **memory) for memory in memories(turn))
    yield from (call for sentence in turn.sentences if (call := _task_call(turn, sentence)))
    if turn.of_kind("list_tasks") or turn.of_kind("list_memories"):
        yield Call.of("get_recent_memories", limit=RECENT)
    for question in turn.of_kind("question"):
        search = Call.of("search_memories", query=question.text)
        yield from (search, Call.of("get_recent_memories", limit=RECENT))
        if search in turn.results and content_words(question.text) and not _answers(turn, question.text):
            yield Call.of("search_knowledge", query=question.text)


def _told(turn: Turn) -> str:
    return " ".join(s.text for s in turn.of_kind("statement") if not _finished(turn, s))


def memories(turn: Turn) -> list[dict[str, Any]]:
    """The fact to remember. In a shared place it names who said it: others' facts stand beside it."""
    told = _told(turn)
    if not told or len(told) > LONGEST_STATEMENT:
        return []
    content = f"{turn.speaker} said: “{told}”" if turn.shared else told
    tags = [turn.speaker.lower()] if turn.speaker else []
    return [{"content": content, "subjects": tags, "ttl": None, "type": "fact", "importance": 0.6}]


def _task_call(turn: Turn, sentence: Sentence) -> Call | None:
    if sentence.kind == "add_task" and sentence.text:
        due = {"due": sentence.due.isoformat()} if sentence.due else {}
        return Call.of("update_task", id=None, description=sentence.text, status="open", **due)
    if found := _finished(turn, sentence):
        return Call.of("update_task", id=found[0], description=found[1], status="done")
    return None


def _finished(turn: Turn, sentence: Sentence) -> tuple[str | None, str] | None:
    """(id, description) of the task that a sentence says is done. "I've called the dentist" must have all the
    words of exactly one open task and no others; "done" alone means the reminder before it."""
    if sentence.kind == "finish_task":
        said = sentence.text or turn.reminded_of
        return (None, said) if said else None
    done = deed(sentence.text) if sentence.kind == "statement" else None
    if done is None:
        return None
    both = ((id, task, share_found(task, done) + share_found(done, task)) for id, task in turn.tasks.items())
    meant = [(id, task) for id, task, shared in both if shared == 2.0]
    return meant[0] if len(meant) == 1 else None


def message(turn: Turn) -> str:
    if danger := turn.of_kind("danger"):
        return str(phrases()["danger_answers"][danger[0].language])
    parts = {_said_to(turn, sentence): sentence.kind for sentence in turn.sentences}
    telling = [
        part for part, kind in parts.items() if kind not in ("greeting", "thanks", "goodbye", "remark")
    ]
    return "\n".join(telling) or next(iter(parts), _phrase("remark"))


def _phrase(key: str) -> str:
    return str(phrases()["answers"][key])


def _said_to(turn: Turn, sentence: Sentence) -> str:
    if sentence.kind in ("add_task", "finish_task") or _finished(turn, sentence):
        return _task_answer(turn, sentence)
    match sentence.kind:
        case "statement":
            return _noted(turn)
        case "question":
            return _answer(turn, sentence)
        case "list_tasks":
            return _listed_tasks(turn)
        case "list_memories":
            return _listed_memories(turn)
    return _phrase(sentence.kind).replace("{name}", f", {turn.name}" if turn.name else "")


def _noted(turn: Turn) -> str:
    """What became of the statements."""
    told = _told(turn)
    if len(told) > LONGEST_STATEMENT:
        return _phrase("too_long")
    name = stated_name(told)
    met = f"Nice to meet you, {name}. " if name else ""
    outcome = next((turn.results[call] for call in turn.results if call.name == "remember"), {})
    if "error" in outcome:
        return f"I could not keep that: {_line(outcome['error'])}"
    if outcome.get("action") == "ignore" and not outcome.get("id"):
        return f"I did not keep that: {_line(outcome.get('reason'))}."
    if outcome.get("action") == "ignore":
        return f"{met}I know that already."
    replaced = ", in place of what you told me before" if outcome.get("action") == "replace" else ""
    return f"{met}I'll remember, in your words: “{_cut(told)}”{replaced}"


def _task_answer(turn: Turn, sentence: Sentence) -> str:
    call = _task_call(turn, sentence)
    if call is None:
        adding = sentence.kind == "add_task"
        return _phrase("no_task") if adding else f"Which task is done? {_listed_tasks(turn)}"
    result = turn.results.get(call, {"error": "the list of tasks cannot be reached"})
    if "error" in result:
        return f"That did not work: {_line(result['error'])}"
    return f"{'Done' if result.get('status') == 'done' else 'On your list'}: {_task_line(result)}."


def _task_line(task: dict[str, Any]) -> str:
    due = datetime.fromisoformat(task["due"]) if task.get("due") and task.get("status") != "done" else None
    when = f", due {due:%A} {due.day} {due:%B %Y, %H:%M}" if due else ""
    return f"“{task.get('description')}”{when}"


def _listed_tasks(turn: Turn) -> str:
    tasks = turn.brought("open_tasks") or [{"description": task} for task in turn.tasks.values()]
    lines = [f"- {_task_line(task)}" for task in tasks]
    return "\n".join(["Your open tasks:", *lines]) if lines else "Nothing is on your list."


def _listed_memories(turn: Turn) -> str:
    quotes = _known(turn)[:MOST_LISTED]
    lines = [f"- {_shown(turn, quote)}" for quote in quotes]
    if turn.name and not any(turn.name in quote.text for quote in quotes):
        lines.append(f"- Your name: {turn.name}")
    return "\n".join(["Here is what I remember, newest first:", *lines]) if lines else _phrase("nothing_yet")


def _answer(turn: Turn, question: Sentence) -> str:
    if quotes := _answers(turn, question.text):
        best = max(share_found(question.text, quote.text) for quote in quotes)
        sure = best >= 0.75 or not content_words(question.text)
        lines = [_shown(turn, quote) for quote in quotes]
        if len(lines) == 1:
            return lines[0] if sure else f"The closest I found: {lines[0]}"
        opening = "Newest first:" if sure else "The closest I found, newest first:"
        return "\n".join([opening, *(f"- {line}" for line in lines)])
    for chunk in turn.brought("chunks"):
        if passage := _passage(question.text, str(chunk.get("text", ""))):
            return f"In {chunk.get('source')}: “{_cut(passage)}”"
    if broken := next((result["error"] for result in turn.results.values() if "error" in result), None):
        return f"I could not look that up: {_line(broken)}"
    return _phrase("nothing" if content_words(question.text) else "cannot")


def _answers(turn: Turn, question: str) -> list[Quote]:
    """The quotations that share the telling words of the question, newest first, each with the corrections
    said right after it. A question without such words, "what happened to me?", is about the newest."""
    known = _known(turn)
    if not content_words(question):
        return known[:MOST_QUOTED] if pattern("personal").search(question) else []
    scores = [share_found(question, quote.text) for quote in known]
    least = max(0.4, 0.8 * max(scores, default=0.0))
    chosen = {at: None for at, score in enumerate(scores) if score >= least}
    for at in list(chosen)[:MOST_QUOTED]:
        while at > 0 and pattern("correction").match(known[at - 1].text) and known[at - 1].said_at:
            at -= 1
            chosen[at] = None
    return [known[at] for at in sorted(chosen)][: 2 * MOST_QUOTED]


def _known(turn: Turn) -> list[Quote]:
    """All there is to quote, newest first, nothing twice; what has no date, of the prompt, comes last."""
    found: list[Quote] = []
    for hit in turn.brought("memories"):
        content, author = str(hit["content"]), str(hit.get("author") or "")
        said_at = datetime.fromisoformat(hit["created_at"])
        if hit["kind"] == "memory":
            found.append(_quote(content, said_at, turn.speaker))
        elif hit["kind"] == "message" and author.casefold() != "hachi":
            author = author if turn.shared and author != turn.speaker else ""
            found += [Quote(stated, said_at, author) for stated in statements(content)]
    found.sort(key=lambda quote: quote.said_at or turn.now, reverse=True)
    known = {Quote(_told(turn)).key: Quote("")}  # what is said in this very message answers nothing
    for quote in (*found, *turn.quotes):
        known.setdefault(quote.key, quote)
    return [quote for quote in known.values() if quote.text]


def _shown(turn: Turn, quote: Quote) -> str:
    """ "You told me on 10 January: “…”"."""
    who = quote.author or (turn.speaker if turn.shared else "You")
    if quote.said_at is None:
        return f"{who} told me: “{_cut(quote.text)}”"
    day = quote.said_at.astimezone(turn.now.tzinfo)
    year = f" {day.year}" if day.year != turn.now.year else ""
    return f"{who} told me on {day.day} {day:%B}{year}: “{_cut(quote.text)}”"


def _passage(question: str, text: str) -> str:
    """The document's text from the sentence on that shares most with the question; empty if none does."""
    parts = re.split(r"(?<=[.!?。])\s+|\n+", text[:4_000])
    scores = [share_found(question, part) for part in parts]
    best = max(scores)
    return " ".join(parts[scores.index(best) :]) if best > 0 else ""


def _line(text: object) -> str:
    return " ".join(str(text).split())[:200]


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST_QUOTE else f"{flat[:LONGEST_QUOTE].rstrip()} …"
