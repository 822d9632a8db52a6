"""The stand-in for a language model: it answers when none is configured, and says so.

It quotes instead of understanding, and knows no word's meaning. What a person states is kept word for word
through the `remember` tool; a question is answered with what was told in the most similar words, and when. A
turn runs the real loop of the Agents SDK with the real tools. The model keeps no state between calls.
"""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from agents import Model, ModelResponse, ModelSettings, Tool, TResponseInputItem, Usage
from agents.items import TResponseStreamEvent
from agents.testing import assistant_message, function_call
from openai.types import responses

from memory.people.due_dates import read_time
from memory.text import sentences
from memory.text.names import fold

NAME = "offline"
MOST_QUOTED, MOST_LISTED, LONGEST_QUOTE, LONGEST_COMMAND = 3, 20, 300, 300
RULE_BASED = "I am only a rule-based stand-in, no language model"
_ANSWERS = {
    "crisis": "I'm so sorry that it hurts this much. I'm only a simple program. Please talk to someone now: "
    "somebody near you, your local emergency number, or a helpline from https://findahelpline.com.",
    "forget": "I forget only what you confirm.",
    "remark": f"Tell me something in a whole sentence, or ask me about what you told me. {RULE_BASED}.",
}
NO_TASKS = "Nothing is on your list. For example: “remind me to call Ana tomorrow at 9”."
NOTHING = f"I found nothing to quote. {RULE_BASED}: I keep what you tell me and quote it when you ask."
_NOW = re.compile(r"^Now: (.+)$", re.M)
_QUESTION = re.compile(r"^## Their message\n(.*?): (.*)", re.M | re.S)
"""The end of the question's message: the speaker, and what they say, its further lines indented."""
_FACT = re.compile(r"^> - \[(?:FACT|PREFERENCE|INSIGHT)\] (.+) \((\d+ \w+ \d+)[^()]*\) \[[\w-]+\]$", re.M)
_REMINDER = re.compile(r"⏰[^“\n]*“([^”\n]+)”")
_COMMANDS = {
    "crisis": r".*\b(?:kill(?:ing)? myself|suicid(?:e|al)|(?:want|going) to die|end my life|hurt myself)\b",
    "add_task": r"(?:remind me|(?:don['’]t forget|remember) to|add (?:a )?(?:task|to-?do):?)\s+(?!.*\?)",
    "finish_task": r"done\W*$|done:\s*|i(?:['’]ve| have) (?:done|finished)\s+",
    "list_tasks": r"(?:(?:what are|show(?: me)?|list) )?my (?:open )?(?:tasks?|to-?dos?)\W*$",
    "forget": r"(?:forget|delete|erase)\s+(?:that\s+|about\s+)?",
    "question": r"(?:who|what|where|when|why|how|which|do|does|did|is|are|was|can)\b|.*[?？؟]\s*$",
}
"""How a message of each kind begins or, with ``$``, reads; the first that fits counts."""
_PATTERNS = {kind: re.compile(rf"(?:please )?(?:{text})", re.I | re.S) for kind, text in _COMMANDS.items()}
_TIME_BEGINS = re.compile(r"(?:on|at|by|in|next|today|tonight|tomorrow|\d|\w+day\b)", re.IGNORECASE)


class Sentence(NamedTuple):
    kind: str
    """A kind of command, `question`, `statement`, or `remark`: less than three words."""
    text: str
    """As it was written; of a task or what is to be forgotten, its name."""
    due: datetime | None = None


class Quote(NamedTuple):
    """Something that was told: the text, when, and by whom; empty for the one who speaks now."""

    text: str
    at: datetime
    author: str = ""


@dataclass(frozen=True, slots=True)
class _Turn:
    said: Sentence
    speaker: str
    now: datetime
    facts: list[Quote]
    """The facts of the prompt, which no tool returns again."""
    results: dict[str, dict[str, Any]]
    """What each tool returned in this turn."""
    shared: bool


class OfflineModel(Model):
    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: ModelSettings,
        tools: list[Tool],
        *_: Any,
        **__: Any,
    ) -> ModelResponse:
        """Return tool calls, or the answer. Tokens are reported as zero: none are used."""
        items = [{"role": "user", "content": input}] if isinstance(input, str) else [dict(i) for i in input]
        turn = _read(items)
        offered = {tool.name for tool in tools} - turn.results.keys()
        offered -= offered if model_settings.tool_choice == "none" else set()
        calls = [
            function_call(name, arguments, call_id=f"offline_{name}")
            for name, arguments in _calls(turn.said, turn)
            if name in offered
        ]
        output = calls or [assistant_message(_answer(turn), item_id="offline_answer")]
        return ModelResponse(output=output, usage=Usage(requests=1), response_id=None)

    async def stream_response(self, *arguments: Any, **named: Any) -> AsyncIterator[TResponseStreamEvent]:
        """Yield the same, the answer word by word and then whole."""
        output = (await self.get_response(*arguments, **named)).output
        text = "".join(getattr(part, "text", "") for item in output for part in getattr(item, "content", ()))
        delta = responses.ResponseTextDeltaEvent.model_construct
        for piece in re.findall(r"\s*\S+|\s+$", text):
            yield delta(type="response.output_text.delta", delta=piece)
        whole = responses.Response.model_construct(id=NAME, model=NAME, output=output)
        yield responses.ResponseCompletedEvent.model_construct(type="response.completed", response=whole)


def _read(items: list[dict[str, Any]]) -> _Turn:
    asked = [at for at, item in enumerate(items) if item.get("role") == "user"]
    last = next(
        (at for at in reversed(asked) if _QUESTION.search(_text(items[at]))), asked[-1] if asked else -1
    )
    text = _text(items[last])
    question = _QUESTION.search(text)
    context = text[: question.start()] if question else ""
    speaker, words = question.groups() if question else ("", text)
    now = _now("".join(_NOW.findall(context)))
    said = read_message(words.replace("\n  ", "\n"), now)
    reminder = _REMINDER.match(_text(items[last - 1])) if last > 0 else None
    if said.kind == "finish_task" and not said.text and reminder:
        said = Sentence("finish_task", reminder[1])
    outputs = {item["call_id"]: item["output"] for item in items[last + 1 :] if "output" in item}
    made = {item["name"]: outputs.get(item["call_id"]) for item in items[last + 1 :] if "arguments" in item}
    facts = [_quote(text, f"{day} 00:00", now, speaker) for text, day in _FACT.findall(context)]
    results = {name: _result(output) for name, output in made.items()}
    return _Turn(said, speaker, now, facts, results, "where others read along" in context)


def _calls(said: Sentence, turn: _Turn) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tool calls that the turn needs, those already made among them."""
    kind, text, due = said
    if kind == "statement":  # in a shared place it names who said it: others' facts stand beside it
        content = f"{turn.speaker} said: “{text}”" if turn.shared else text
        tags = [turn.speaker.lower()] if turn.speaker else []
        yield "remember", {"content": content, "subjects": tags, "ttl": None, "importance": 0.6}
    elif kind in ("add_task", "finish_task") and text:
        status = "open" if kind == "add_task" else "done"
        task = {"id": None, "description": text, "status": status}
        yield "update_task", task | ({"due": due.isoformat()} if due else {})
    elif kind == "question":
        yield "search_memories", {"query": text}
        yield "search_knowledge", {"query": text}
    if kind in ("question", "list_tasks", "finish_task"):
        yield "get_recent_memories", {"limit": MOST_LISTED}


def _answer(turn: _Turn) -> str:
    answer: dict[str, Any] = {"message": _message(turn), "memories": []}
    if turn.said.kind == "forget":
        answer["forget"] = [turn.said.text]
    return json.dumps(answer, ensure_ascii=False)


def _message(turn: _Turn) -> str:
    kind = turn.said.kind
    failed = next((str(result["error"]) for result in turn.results.values() if "error" in result), "")
    if kind in _ANSWERS:
        return _ANSWERS[kind]
    if kind == "question":
        return _quoted(turn, failed)
    if failed:
        return f"That did not work: {_cut(failed)}"
    if kind == "statement":
        kept = turn.results.get("remember", {})
        if kept.get("action") != "ignore":
            return f"I'll remember, in your words: “{_cut(turn.said.text)}”"
        return (
            "I know that already." if kept.get("id") else f"I did not keep that: {_cut(kept.get('reason'))}."
        )
    if task := turn.results.get("update_task"):
        return f"{'Done' if task.get('status') == 'done' else 'On your list'}: {_task_line(task)}."
    tasks = turn.results.get("get_recent_memories", {}).get("open_tasks", [])
    return "\n- ".join(["Your open tasks:", *map(_task_line, tasks)]) if tasks else NO_TASKS


def _task_line(task: dict[str, Any]) -> str:
    due = datetime.fromisoformat(task["due"]) if task.get("due") and task.get("status") != "done" else None
    city = f", {task['zone'].rpartition('/')[2].replace('_', ' ')}" if "zone" in task else ""
    when = f", due {due:%A} {due.day} {due:%B %Y, %H:%M}{city}" if due else ""
    return f"“{task['description']}”{when}"


def _quoted(turn: _Turn, failed: str) -> str:
    """Return what was told in words like the question's, newest first; else a document's; else the newest."""
    question, known = turn.said.text, _known(turn)
    alike = sorted(by_likeness(question, [quote.text for quote in known])[:MOST_QUOTED])
    found = [_line(turn, known[at]) for at in alike or range(min(len(known), MOST_QUOTED))]
    if len(found) == 1:
        return found[0]
    if alike:
        return "\n- ".join(["The closest that I was told, newest first:", *found])
    chunks = turn.results.get("search_knowledge", {}).get("chunks", [])
    parts = [(chunk["source"], part) for chunk in chunks for part in sentences(chunk["text"])]
    if best := by_likeness(question, [text for _, text in parts]):
        source, text = parts[best[0]]
        return f"In {source}: “{_cut(text)}”"
    if failed:
        return f"I could not look that up: {_cut(failed)}"
    newest = "I found nothing in these words. The newest that I was told:"
    return "\n- ".join([newest, *found]) if found else NOTHING


def _known(turn: _Turn) -> list[Quote]:
    """Return all there is to quote, newest first, nothing twice."""
    quotes = list(turn.facts)
    for result in turn.results.values():
        for hit in (*result.get("memories", ()), *result.get("newest", ())):
            at, *lines = hit if isinstance(hit, list) else [hit["at"]]
            if isinstance(hit, dict) and hit["kind"] == "memory":
                quotes.append(_quote(hit["content"], at[4:], turn.now, turn.speaker, hit.get("told_by", "")))
            for line in lines:  # of an excerpt of messages; ~ marks those that were not found
                author, _, said = line.partition(": ")
                if author != "hachi" and not author.startswith(("~", "…")):
                    by = "" if author == turn.speaker or not turn.shared else author
                    told = [one for one in sentences(said) if read_message(one).kind == "statement"]
                    quotes += [_quote(text, at[4:], turn.now, turn.speaker, by) for text in told]
    quotes.sort(key=lambda quote: quote.at, reverse=True)
    return list({(quote.text.casefold(), quote.author): quote for quote in reversed(quotes)}.values())[::-1]


def _quote(content: str, at: str, now: datetime, speaker: str, author: str = "") -> Quote:
    """Return a fact as a quotation. One from a shared place names who said it."""
    if found := re.fullmatch(r"(.{1,80}?) said: “(.*)”", content, re.S):
        author, content = found[1], found[2]
    told_at = datetime.strptime(at, "%d %b %Y %H:%M").replace(tzinfo=now.tzinfo)
    return Quote(content, told_at, "" if author == speaker else author)


def _line(turn: _Turn, quote: Quote) -> str:
    """Return "You told me on 10 January 2026: “…”"."""
    who = quote.author or (turn.speaker if turn.shared else "You")
    return f"{who} told me on {quote.at.day} {quote.at:%B %Y}: “{_cut(quote.text)}”"


def _now(text: str) -> datetime:
    """Return the time in the prompt, in the person's zone."""
    if found := re.match(r"\w+ (\d+ \w+ \d+, [\d:]+)(?: \(([\w+/-]+), )?", text):
        zone = ZoneInfo(found[2]) if found[2] else UTC
        return datetime.strptime(found[1], "%d %B %Y, %H:%M:%S").replace(tzinfo=zone)
    return datetime.now(UTC)


def _text(item: dict[str, Any]) -> str:
    content = item.get("content", "")
    return content if isinstance(content, str) else "\n".join(str(p["text"]) for p in content if "text" in p)


def _result(output: Any) -> dict[str, Any]:
    with suppress(ValueError, RecursionError, TypeError):
        if isinstance(found := json.loads(output), dict):
            return found
    return {"error": str(output)}


def _cut(text: object) -> str:
    flat = " ".join(str(text).split())
    return flat if len(flat) <= LONGEST_QUOTE else f"{flat[:LONGEST_QUOTE].rstrip()} …"


def read_message(text: str, now: datetime | None = None) -> Sentence:
    """Return what kind of message it is. `now` is aware, in the zone in which due dates are meant; without it
    no due date is read."""
    flat = " ".join(text.split())
    for kind, pattern in _PATTERNS.items() if len(flat) <= LONGEST_COMMAND else ():
        if found := pattern.match(flat):
            rest = flat[found.end() :].strip(" .!")
            if kind == "add_task":
                return Sentence(kind, *find_due(rest, now))
            return Sentence(kind, rest if kind in ("finish_task", "forget") else flat)
    if len(re.findall(r"\w+", flat)) <= 2 and flat.isascii():
        return Sentence("remark", text)
    return Sentence("statement", text)


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


def _task(words: Sequence[str]) -> str:
    return re.sub(r"^(?:to|about|that)\s+", "", " ".join(words), flags=re.IGNORECASE).strip(" .,:")


def by_likeness(question: str, texts: Sequence[str]) -> list[int]:
    """Return the positions of the texts that share words with the question, the best first. A word counts
    less the more texts have it."""
    there = [_telling(text) for text in texts]
    common = Counter(word for words in there for word in words)
    asked = _telling(question)
    scores = [sum(1 / common[word] for word in asked & words) for words in there]
    return sorted((at for at, score in enumerate(scores) if score), key=lambda at: -scores[at])


def _telling(text: str) -> set[str]:
    """Return the words of three characters or more as they are compared: their first five letters."""
    words = re.findall(r"\w+", text)
    return {fold(word).rstrip("s")[:5] for word in words if len(word) > 2 or word.isdigit()}
