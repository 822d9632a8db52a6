"""The stand-in: answer by rules where no language model is configured, and say so.

It understands no words. A statement is stored word for word through the `remember` tool. A question is
answered with the stored texts that share most words with it, and their dates. A forgetting is offered. A turn
runs the real loop of the Agents SDK with the real tools. The model keeps no state between calls.
"""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from agents import Model, ModelResponse, Usage
from agents.items import TResponseStreamEvent
from agents.testing import assistant_message, function_call
from openai.types import responses

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
NOTHING = f"I found nothing to quote. {RULE_BASED}: I keep what you tell me and quote it when you ask."
_QUESTION = re.compile(r"^## Their message\n(.*?): (.*)", re.M | re.S)
"""Matches the end of the question's message: the speaker and their text, with further lines indented."""
_FACT = re.compile(r"^> - \[(?:FACT|PREFERENCE|INSIGHT)\] (.+) \((\d+ \w+ \d+)[^()]*\) \[[\w-]+\]$", re.M)
_FORGET = re.compile(r"(?:please )?(?:forget|delete|erase)\s+(?:that\s+|about\s+)?", re.I)
_KINDS = {
    "crisis": re.compile(
        r".*\b(?:kill(?:ing)? myself|suicid(?:e|al)|(?:want|going) to die|end my life|hurt myself)\b", re.I
    ),
    "forget": _FORGET,
    "question": re.compile(
        r"(?:who|what|where|when|why|how|which|do|does|did|is|are|was|can)\b|.*[?？؟]\s*$", re.I
    ),
}
"""Patterns for the beginning of a message or, with ``$``, all of it, by kind; the first match counts."""


class Quote(NamedTuple):
    text: str
    at: datetime
    """In the person's time zone."""
    source: str
    """Such as "You told me on 10 January 2026"."""


@dataclass(frozen=True, slots=True)
class _Turn:
    text: str
    kind: str
    speaker: str
    context: str
    """The prompt's text before the message."""
    results: dict[str, dict[str, Any]]
    """What each tool returned in this turn."""

    @property
    def shared(self) -> bool:
        return "where others read along" in self.context


class OfflineModel(Model):
    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *_: Any, **__: Any
    ) -> ModelResponse:
        """Return tool calls, or the answer. Tokens are reported as zero: none are used."""
        items = [{"role": "user", "content": input}] if isinstance(input, str) else [dict(i) for i in input]
        turn = _read(items)
        offered = {tool.name for tool in tools} - turn.results.keys()
        calls = [
            function_call(name, arguments, call_id=f"offline_{name}")
            for name, arguments in _calls(turn)
            if name in offered and model_settings.tool_choice != "none"
        ]
        output = calls or [assistant_message(_answer(turn), item_id="offline_answer")]
        return ModelResponse(output=output, usage=Usage(requests=1), response_id=None)

    async def stream_response(self, *arguments: Any, **named: Any) -> AsyncIterator[TResponseStreamEvent]:
        """Yield the same output: the answer word by word, then whole."""
        output = (await self.get_response(*arguments, **named)).output
        text = "".join(getattr(part, "text", "") for item in output for part in getattr(item, "content", ()))
        delta = responses.ResponseTextDeltaEvent.model_construct
        for piece in re.findall(r"\s*\S+|\s+$", text):
            yield delta(type="response.output_text.delta", delta=piece)
        whole = responses.Response.model_construct(id=NAME, model=NAME, output=output)
        yield responses.ResponseCompletedEvent.model_construct(type="response.completed", response=whole)


def _read(items: list[dict[str, Any]]) -> _Turn:
    questions = [at for at, item in enumerate(items) if item.get("role") == "user"] or [-1]
    last = next((at for at in reversed(questions) if _QUESTION.search(_text(items[at]))), questions[-1])
    text, after = _text(items[last]), items[last + 1 :]
    question = _QUESTION.search(text)
    speaker, words = question.groups() if question else ("", text)
    words = words.replace("\n  ", "\n")
    outputs = {item["call_id"]: item["output"] for item in after if "output" in item}
    results = {item["name"]: _result(outputs.get(item["call_id"])) for item in after if "arguments" in item}
    return _Turn(words, message_kind(words), speaker, text[: question.start()] if question else "", results)


def message_kind(text: str) -> str:
    """Return `crisis`, `forget`, `question`, `remark` (less than three words) or `statement`."""
    flat = " ".join(text.split())
    if len(flat) <= LONGEST_COMMAND:
        for kind, pattern in _KINDS.items():
            if pattern.match(flat):
                return kind
    return "remark" if len(re.findall(r"\w+", flat)) <= 2 and flat.isascii() else "statement"


def _calls(turn: _Turn) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tool calls that the turn needs, including those already made."""
    if turn.kind == "statement":  # in a shared place the memory names who said it
        content = f"{turn.speaker} said: “{turn.text}”" if turn.shared else turn.text
        tags = [turn.speaker.lower()] if turn.speaker else []
        yield "remember", {"content": content, "subjects": tags, "ttl": None, "importance": 0.6}
    elif turn.kind == "question":
        yield "search_memories", {"query": turn.text}
        yield "search_knowledge", {"query": turn.text}
        yield "get_recent_memories", {"limit": MOST_LISTED}


def _answer(turn: _Turn) -> str:
    answer: dict[str, Any] = {"message": _ANSWERS.get(turn.kind) or _message(turn), "memories": []}
    if turn.kind == "forget":
        answer["forget"] = [_FORGET.sub("", " ".join(turn.text.split()), count=1).strip(" .!")]
    return json.dumps(answer, ensure_ascii=False)


def _message(turn: _Turn) -> str:
    failed = next((_cut(result["error"]) for result in turn.results.values() if "error" in result), "")
    if turn.kind == "question":
        return _quoted(turn) or (f"I could not look that up: {failed}" if failed else NOTHING)
    stored = turn.results.get("remember", {})
    if failed or (stored.get("action") == "ignore" and not stored.get("id")):
        return f"That was not kept: {failed or _cut(stored.get('reason'))}"
    if stored.get("action") == "ignore":
        return "I know that already."
    return f"I'll remember, in your words: “{_cut(turn.text)}”"


def _quoted(turn: _Turn) -> str:
    """Quote texts that share words with the question, newest first; else the newest memories and messages.
    Documents are quoted only if one of them fits better than all of those."""
    unique: dict[tuple[str, str], Quote] = {}
    for quote in _quotes(turn):
        unique.setdefault((quote.source, quote.text), quote)
    quotes = sorted(unique.values(), key=lambda quote: quote.at, reverse=True)
    title = "The closest that I was told, newest first:"
    fact_quotes = [at for at, quote in enumerate(quotes) if not quote.source.startswith("In ")]
    alike = by_likeness(turn.text, [quote.text for quote in quotes])
    if alike[:1] and alike[0] in fact_quotes:
        alike = [at for at in alike if at in fact_quotes]
    alike = sorted(alike[:MOST_QUOTED])
    if not alike:
        title = "I found nothing in these words. The newest that I was told:"
        alike = fact_quotes[:MOST_QUOTED]
    lines = [f"{quotes[at].source}: “{_cut(quotes[at].text)}”" for at in alike]
    return lines[0] if len(lines) == 1 else "\n- ".join([title, *lines]) if lines else ""


def _quotes(turn: _Turn) -> Iterator[Quote]:
    """Yield what may be quoted: the facts of the prompt, which searches leave out, and results of tools."""
    for fact, day in _FACT.findall(turn.context):
        yield _fact_quote(turn, fact, f"{day} 00:00")
    results = turn.results.values()
    for hit in (hit for key in ("memories", "newest") for result in results for hit in result.get(key, ())):
        if isinstance(hit, dict):
            if hit["kind"] == "memory":
                yield _fact_quote(turn, hit["content"], hit["at"][4:], hit.get("told_by", ""))
            continue
        at, *lines = hit  # an excerpt of messages; ~ marks those that were not found
        for author, _, text in (line.partition(": ") for line in lines):
            if author != "hachi" and not author.startswith(("~", "…")):
                for sentence in sentences(text):
                    if message_kind(sentence) == "statement":
                        yield _fact_quote(turn, sentence, at[4:], author if turn.shared else "")
    for chunk in turn.results.get("search_knowledge", {}).get("chunks", ()):
        for sentence in sentences(chunk["text"]):
            yield Quote(sentence, datetime.min.replace(tzinfo=UTC), f"In {chunk['source']}")


def _fact_quote(turn: _Turn, content: str, at: str, author: str = "") -> Quote:
    """Return a fact as a quotation, with its author if it is from a shared place."""
    if named := re.fullmatch(r"(.{1,80}?) said: “(.*)”", content, re.S):
        author, content = named[1], named[2]
    when = datetime.strptime(at, "%d %b %Y %H:%M").replace(tzinfo=UTC)
    who = author if author and author != turn.speaker else turn.speaker if turn.shared else "You"
    return Quote(content, when, f"{who} told me on {when.day} {when:%B %Y}")


def _text(item: dict[str, Any]) -> str:
    content = item.get("content", "")
    return content if isinstance(content, str) else "\n".join(str(p["text"]) for p in content if "text" in p)


def _result(output: Any) -> dict[str, Any]:
    with suppress(ValueError, RecursionError, TypeError):
        if isinstance(parsed := json.loads(output), dict):
            return parsed
    return {"error": str(output)}


def _cut(text: object) -> str:
    flat = " ".join(str(text).split())
    return flat if len(flat) <= LONGEST_QUOTE else f"{flat[:LONGEST_QUOTE].rstrip()} …"


def by_likeness(question: str, texts: Sequence[str]) -> list[int]:
    """Return the positions of the texts that share words with the question, the best first. A word counts
    less the more texts have it."""
    word_sets = [_words(text) for text in texts]
    common = Counter(word for words in word_sets for word in words)
    question_words = _words(question)
    scores = [sum(1 / common[word] for word in question_words & words) for words in word_sets]
    return sorted((at for at, score in enumerate(scores) if score), key=lambda at: -scores[at])


def _words(text: str) -> set[str]:
    """Return the words of three characters or more as they are compared: their first five letters."""
    words = re.findall(r"\w+", text)
    return {fold(word).rstrip("s")[:5] for word in words if len(word) > 2 or word.isdigit()}
