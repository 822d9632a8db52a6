"""The model call of a consolidation: builds its prompt and reads the answer.

An answer without a whole JSON object is rejected (`InvalidExtraction`). Of any other each value is read for
itself, and the result says which ones could not be read.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import openai
from agents import ModelRefusalError
from pydantic import Field
from pydantic_core import from_json

from agent.background.slice import KNOWN_FACTS, ConversationSlice
from agent.background.updates import ExtractionResult, FactRuling
from agent.models.ask import ask, strict_object
from agent.models.choose import ChosenModel
from agent.models.json_objects import object_with
from agent.settings import Budget
from agent.turn.budget import Purse, lines_that_fit
from agent.turn.user_snippet import (
    LONGEST_NAME,
    clock,
    fact_lines,
    line,
    moment,
    serialize_user_context_snippet,
)
from memory.facts.rulings import RULINGS, Ruling
from memory.people.memory_updates import Answered, MemoryUpdates, each, otherwise
from memory.records import Memory
from prompts import read, render

MEMORY_SUMMARY = Budget(300)
KNOWN = Budget(1500)
"""The extraction sees more of the user context than the conversation does, because it updates it."""
STORED = Budget(2_000)
NEAR = Budget(3_000)
TO_SUMMARISE = Budget(4_000)
REREAD = Budget(6_000)
"""What people said before, where the summary is rebuilt from it."""
MAX_RULINGS = 200
MAX_MESSAGE = 4_000
"""Characters of one message in the prompt, taken from its beginning and its end."""


class InvalidExtraction(Exception):
    """The model's answer cannot be applied. The message says why."""


class _Ruled(Answered):
    new: Annotated[str, Field(coerce_numbers_to_str=True)]
    old: Annotated[str, Field(coerce_numbers_to_str=True)]
    ruling: Ruling | Literal["both"]


class _Rest(Answered):
    """What an answer holds beside the updates."""

    summary: Annotated[str, otherwise("")] = ""
    memory_summary: Annotated[str | None, otherwise(None)] = None
    rulings: Annotated[tuple[_Ruled, ...], each(MAX_RULINGS), otherwise(())] = ()


async def extract_memory_updates(
    chosen: ChosenModel, part: ConversationSlice, summary: Budget
) -> ExtractionResult:
    """Ask the model. Raises InvalidExtraction for an unusable answer, and when the server rejects the prompt
    so that a retry would not help. Errors of the model's library pass through."""
    question = extraction_prompt(part, summary)
    try:
        answer = await ask(chosen, "look_back", question, _schema(part))
    except (ModelRefusalError, openai.BadRequestError, openai.UnprocessableEntityError) as error:
        raise InvalidExtraction(f"{type(error).__name__}: {line(str(error))}") from error
    return read_extraction(answer, summary)


def extraction_prompt(part: ConversationSlice, summary: Budget) -> str:
    extras = [extra for extra, wanted in _extras(part) if wanted]
    known = serialize_user_context_snippet(part.known, KNOWN, KNOWN_FACTS, now=part.now)
    return render(
        "look_back",
        speaker=quoted([_named(part.speaker)]),
        now=clock(part.now, part.known.zone),
        previous=quoted(_previous(part) or ["(none yet)"]),
        known=quoted(text.removeprefix("> ") for text in known.splitlines() or ["(nothing)"]),
        noted=quoted(_facts(part, part.stored, STORED) or ["(nothing)"]),
        near=quoted(_facts(part, part.near, NEAR) or ["(nothing but what stands above)"]),
        messages=quoted(_transcript(part) or ["(nothing new)"]),
        focus=read(f"focus_{part.mode}"),
        more="".join(f', "{name}": …' for name in extras),
        characters=str(summary.characters),
        asked="\n".join(_asked(part)),
    )


def read_extraction(answer: str, summary: Budget) -> ExtractionResult:
    """Parse and validate the model's answer. Raises InvalidExtraction."""
    found, faults = _object_in(answer), list[str]()
    updates = MemoryUpdates.model_validate(found, context=faults)
    rest = _Rest.model_validate(found, context=faults)
    about = rest.memory_summary
    return ExtractionResult(
        summary=lines_that_fit(rest.summary, summary),
        updates=updates,
        memory_summary=lines_that_fit(about, MEMORY_SUMMARY) if about else None,
        rulings=tuple(
            FactRuling(one.new, one.old, one.ruling) for one in rest.rulings if one.ruling != "both"
        ),
        faults=tuple(faults),
    )


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
        raise InvalidExtraction("it contains no JSON object with these fields")
    if found.cut:
        raise InvalidExtraction("the JSON object is cut off")
    return dict(found)


def _previous(part: ConversationSlice) -> list[str]:
    """Return the summary so far or, where it was withheld, what people said before: the newest lines that
    fit, in order, each with its time."""
    if part.summary:
        return [line(text, None) for text in part.summary.splitlines()]
    purse, lines = Purse(REREAD), []
    for message in reversed(part.earlier):
        when = moment(message.sent_at, part.known.zone)
        said = f"[{when}] {_named(message.author)}: {line(_both_ends(message.text), None)}"
        if not purse.take(said):
            break
        lines.append(said)
    return lines[::-1]


def _transcript(part: ConversationSlice) -> list[str]:
    """Return the messages as lines. Names are quoted and only the companion's lines begin with =>, so no name
    can imitate it."""
    lines = list[str]()
    for message in part.messages:
        who = "=>" if message.role == "assistant" else f"{_named(message.author)}:"
        first, *rest = _both_ends(message.text).splitlines() or [""]
        when = moment(message.sent_at, part.known.zone)
        lines += [f"[{when}] {who} {first}", *(f"  {more}" for more in rest)]
    return lines


def _named(author: str) -> str:
    name = line(author, None).replace('"', "'")[:LONGEST_NAME].strip()
    return f'"{name or "someone"}"'


def _both_ends(text: str) -> str:
    """Cut the middle of a long text: people comment on pasted text before or after it."""
    if len(text) <= MAX_MESSAGE:
        return text
    half = MAX_MESSAGE // 2
    return f"{text[:half]} … {text[-half:]}"


def _facts(part: ConversationSlice, facts: Iterable[Memory], budget: Budget) -> list[str]:
    """Return one line per fact, as many as fit the budget."""
    purse = Purse(budget)
    return [text for text in fact_lines(facts, part.known.zone, part.now) if purse.take(text)]


def _extras(part: ConversationSlice) -> Sequence[tuple[str, bool]]:
    return (("memory_summary", bool(part.to_summarise)), ("rulings", part.rulable))


def _asked(part: ConversationSlice) -> list[str]:
    asked = []
    if part.no_longer:
        purse = Purse(STORED)
        over = [text for text in part.no_longer if purse.take(text)]
        asked.append(render("look_back_no_longer", facts=quoted(over)))
    if part.to_summarise:
        facts = quoted(_facts(part, part.to_summarise, TO_SUMMARISE))
        asked.append(render("look_back_memory_summary", facts=facts))
    if part.rulable:
        asked.append(read("look_back_rulings"))
    return asked


def _schema(part: ConversationSlice) -> dict[str, Any]:
    """Return the answer's JSON schema in the form that OpenAI's strict mode accepts."""
    text, optional = {"type": "string"}, {"type": ["string", "null"]}
    fields = {
        "summary": text,
        "new_facts": _list_of(
            text=text,
            importance={"type": "string", "enum": ["low", "medium", "high"]},
            tags={"type": "array", "items": text},
            ttl=optional,
            replaces=optional,
        ),
        "new_preferences": _list_of(key=text, value=text, replaces=optional),
        "task_updates": _list_of(
            id=optional,
            description=text,
            status={"type": "string", "enum": ["open", "in_progress", "done"]},
        ),
    }
    extras = {
        "memory_summary": text,
        "rulings": _list_of(new=text, old=text, ruling={"type": "string", "enum": [*RULINGS, "both"]}),
    }
    fields |= {name: extras[name] for name, wanted in _extras(part) if wanted}
    return strict_object(**fields)


def _list_of(**fields: Any) -> dict[str, Any]:
    return {"type": "array", "items": strict_object(**fields)}
