"""Looking back at an exchange: the one model call that all upkeep of it may cost.

What is asked for and how its answer is read. The answer is taken as a whole or not at all: one that does not
validate changes nothing (`NotUnderstood`). What is found is applied in `agent/background/consolidation.py`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import openai
from agents import ModelRefusalError
from pydantic import ValidationError
from pydantic_core import from_json

from agent.models.ask import ask
from agent.models.choose import ChosenModel
from agent.models.json_repair import object_with
from agent.models.judge import pairs_to_replace, written_pairs
from agent.settings import Budget
from agent.turn.budget import Purse, sentences_that_fit
from agent.turn.user_snippet import (
    LONGEST_NAME,
    build_memory_context,
    line,
    moment,
    serialize_user_context_snippet,
)
from memory.audience import Place
from memory.facts.similar import Doubt
from memory.people.profile import MemoryUpdates, UserContext
from memory.records import Memory, Message
from memory.text import sentences
from prompts import read, render

Mode = Literal["companion", "study", "work"]

MOST_SENTENCES = 5
LONGEST_MEMORY_SUMMARY = Budget(300)
KNOWN = Budget(1500)
"""Of what is known already the extractor sees more than the conversation does: it is to add to it."""
KNOWN_FACTS = 20
NOTED = Budget(2_000)
TO_SUM = Budget(4_000)
LONGEST_MESSAGE = 4_000
"""Characters of one message that are looked back at: its beginning and its end."""


class NotUnderstood(Exception):
    """The model's answer is none that could be applied. The text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class ConversationSlice:
    """What is looked back at: the newest messages, all of one person and of what they were answered."""

    conversation_id: str
    owner: str
    """Whose conversation it is: ``place:P``, or ``user:U`` in private."""
    place: Place
    user: str
    speaker: str
    messages: tuple[Message, ...]
    """Oldest first."""
    previous: str
    """The summary up to them."""
    after: int
    """Where the summary reached to …"""
    upto: int
    """… and where it will, with these messages."""
    mode: Mode
    known: UserContext
    noted: tuple[Memory, ...]
    """What was kept of these messages already."""
    doubts: tuple[tuple[Memory, Memory], ...]
    """(older, newer) of which it is in doubt whether the newer one takes the older one's place."""
    too_much: tuple[Memory, ...]
    """Facts of which a summary is due, since they do not fit into the context; empty where none is."""
    now: datetime

    @property
    def said(self) -> tuple[Message, ...]:
        return tuple(message for message in self.messages if message.role == "user")


@dataclass(frozen=True, slots=True)
class ExtractionResult:
    summary: str
    """Empty where the model gave none."""
    updates: MemoryUpdates
    memory_summary: str | None
    replacing: frozenset[int]
    """Which of the exchange's doubts, from 1, are ruled to replace."""


async def extract_memory_updates(
    chosen: ChosenModel, exchange: ConversationSlice, summary: Budget
) -> ExtractionResult:
    """Ask the model. Raises NotUnderstood, also where this very question is refused and asking again would
    not help, and what the model's library raises."""
    question = question_of(exchange, summary)
    try:
        answer = await ask(chosen, "look_back", question, _schema(exchange))
    except (ModelRefusalError, openai.BadRequestError, openai.UnprocessableEntityError) as error:
        raise NotUnderstood(f"{type(error).__name__}: {line(str(error))}") from error
    return findings_in(answer, summary)


def question_of(exchange: ConversationSlice, summary: Budget) -> str:
    extras = [extra for extra, wanted in _extras(exchange) if wanted]
    known = serialize_user_context_snippet(exchange.known, KNOWN, KNOWN_FACTS)
    return render(
        "look_back",
        speaker=quoted([_named(exchange.speaker)]),
        now=moment(exchange.now, exchange.known.zone),
        previous=quoted([line(exchange.previous, None)] if exchange.previous else ["(none yet)"]),
        known=quoted(text.removeprefix("> ") for text in known.splitlines() or ["(nothing)"]),
        noted=quoted(_facts(exchange.noted, NOTED) or ["(nothing)"]),
        messages=quoted(_transcript(exchange)),
        focus=read(f"focus_{exchange.mode}"),
        more="".join(f', "{name}": …' for name in extras),
        characters=str(summary.characters),
        asked="\n".join(_asked(exchange)),
    )


def findings_in(answer: str, summary: Budget) -> ExtractionResult:
    """What the model found. Raises NotUnderstood."""
    found = _object_in(answer)
    said, about = found.get("summary", ""), found.get("memory_summary")
    if not isinstance(said, str) or not isinstance(about, str | None):
        raise NotUnderstood("its summary is no text")
    try:
        updates = MemoryUpdates.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise NotUnderstood(f"{where}: {first['msg'].lower()}") from None
    return ExtractionResult(
        summary=as_summary(said, summary),
        updates=updates,
        memory_summary=as_summary(about, LONGEST_MEMORY_SUMMARY) if about else None,
        replacing=frozenset(pairs_to_replace(found)),
    )


def as_summary(text: str, budget: Budget) -> str:
    """At most five sentences, whole ones as long as one fits."""
    found = sentences(" ".join(text.split()))
    kept = " ".join(sentences_that_fit(found[:MOST_SENTENCES], budget))
    if kept or not found:
        return kept
    words: list[str] = []
    for word in found[0].split():
        if budget.cost(" ".join([*words, word, "…"])) > budget.amount:
            break
        words.append(word)
    return " ".join([*words, "…"]) if words else ""


def quoted(lines: Iterable[str]) -> str:
    return "\n".join(f"> {text}" for text in lines)


def _object_in(answer: str) -> dict[str, Any]:
    try:
        whole = from_json(answer.strip())
        if isinstance(whole, dict):
            return whole
    except ValueError:
        pass
    found = object_with(answer, "summary", "new_facts")
    if found is None:
        raise NotUnderstood("it holds no such object")
    if found.cut:
        raise NotUnderstood("it ends in the middle")
    return dict(found)


def _transcript(exchange: ConversationSlice) -> list[str]:
    """No name can pass for the companion: it stands in quotation marks, and the companion's lines begin as no
    person's do."""
    lines = []
    for message in exchange.messages:
        who = "=>" if message.role == "assistant" else f"{_named(message.author)}:"
        first, *rest = _both_ends(message.text).splitlines() or [""]
        when = moment(message.sent_at, exchange.known.zone)
        lines += [f"[{when}] {who} {first}", *(f"  {more}" for more in rest)]
    return lines


def _named(author: str) -> str:
    name = line(author, None).replace('"', "'")[:LONGEST_NAME].strip()
    return f'"{name or "someone"}"'


def _both_ends(text: str) -> str:
    """Of something pasted, the beginning and what is said of it at the end."""
    if len(text) <= LONGEST_MESSAGE:
        return text
    half = LONGEST_MESSAGE // 2
    return f"{text[:half]} … {text[-half:]}"


def _facts(facts: Iterable[Memory], budget: Budget) -> list[str]:
    """A line each, as many as fit."""
    purse = Purse(budget)
    lines = build_memory_context(facts).splitlines()
    return [text for text in lines if purse.take(text)]


def _extras(exchange: ConversationSlice) -> Sequence[tuple[str, bool]]:
    return (("memory_summary", bool(exchange.too_much)), ("rulings", bool(exchange.doubts)))


def _asked(exchange: ConversationSlice) -> list[str]:
    asked = []
    if exchange.too_much:
        about = exchange.known.memory_summary
        old = [f"summary: {line(about, None)}"] if about else []
        asked.append(
            render("look_back_memory_summary", facts=quoted([*old, *_facts(exchange.too_much, TO_SUM)]))
        )
    if exchange.doubts:
        pairs = [Doubt(o.content, o.created_at, n.content, n.created_at) for o, n in exchange.doubts]
        asked.append(render("look_back_rulings", pairs=written_pairs(pairs)))
    return asked


def _schema(exchange: ConversationSlice) -> dict[str, Any]:
    """The form in which it is asked for, as OpenAI's strict mode accepts it."""
    text = {"type": "string"}
    fields = {
        "summary": text,
        "new_facts": _list_of(
            text=text,
            importance={"type": "string", "enum": ["low", "medium", "high"]},
            tags={"type": "array", "items": text},
        ),
        "new_preferences": _list_of(key=text, value=text),
        "task_updates": _list_of(
            id={"type": ["string", "null"]},
            description=text,
            status={"type": "string", "enum": ["open", "in_progress", "done"]},
        ),
    }
    extras = {
        "memory_summary": text,
        "rulings": _list_of(pair={"type": "integer"}, action={"type": "string", "enum": ["replace", "add"]}),
    }
    fields |= {name: extras[name] for name, wanted in _extras(exchange) if wanted}
    return _object(fields)


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def _list_of(**fields: Any) -> dict[str, Any]:
    return {"type": "array", "items": _object(fields)}
