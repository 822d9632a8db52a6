"""The model call of a consolidation: builds its prompt and reads the answer, item by item.

What is written whole counts. The result says which values could not be read, and whether the answer is
whole: the object that was asked for, not cut off, with a summary and lists.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from agent.background.consolidation_citations import REFUSED, with_one_author_each
from agent.background.consolidation_input import KNOWN_FACTS, ConsolidationInput
from agent.background.consolidation_lines import both_ends
from agent.models.ask import ask, strict_object
from agent.models.choice.choose import ChosenModel
from agent.models.json_objects import objects_in, up_to_the_last_end
from agent.turn.context.budget import Purse, lines_that_fit, newest_that_fit
from agent.turn.context.user_snippet import (
    clock,
    fact_lines,
    line,
    moment,
    serialize_user_context_snippet,
)
from agent.types.budget import Budget
from memory.facts.decide import RULINGS, Ruling
from memory.people.findings import Answered, Findings, each, otherwise
from memory.records import Memory
from memory.text.quoting import joined, numbered, speaker
from memory.text.short_ids import SHORT_ID, read_id
from prompts import read, render
from prompts.echo import is_echo

MEMORY_SUMMARY = Budget(300)
KNOWN = Budget(1_500)
"""Of all who spoke. The extraction sees more of it than the conversation does, because it updates it."""
STORED = Budget(2_000)
NEAR = Budget(2_000)
TO_SUMMARISE = Budget(2_000)
REREAD = Budget(3_000)
"""What people said before, where the summary is written again."""
MAX_RULINGS = 200
_BEGINS = re.compile(r'\{\s*"')
MOST_QUOTES, LONGEST_QUOTE = 5, 240
"""How many messages a summary without a model quotes, and how many characters of each."""


class FactRuling(Answered):
    """What the model ruled that one fact does to another."""

    new: Annotated[str, Field(coerce_numbers_to_str=True)]
    """A short id, or the number in `new_facts` as ``#1``."""
    old: Annotated[str, Field(coerce_numbers_to_str=True)]
    """A short id."""
    ruling: Ruling | Literal["both"]


class _Rest(Answered):
    """What an answer holds beside the updates."""

    summary: Annotated[str, otherwise("")] = ""
    memory_summary: Annotated[str | None, otherwise(None)] = None
    rulings: Annotated[tuple[FactRuling, ...], each(MAX_RULINGS), otherwise(())] = ()


@dataclass(frozen=True, slots=True)
class ConsolidationAnswer:
    summary: str
    """The conversation's summary; empty if the model wrote none."""
    updates: Findings = field(default_factory=Findings)
    memory_summary: str = ""
    """The summary of the person's facts; empty if the model wrote none."""
    rulings: tuple[FactRuling, ...] = ()
    faults: tuple[str, ...] = ()
    """Which values of the answer could not be read, and why."""
    whole: bool = True
    """False if the answer was cut off, refused or of another form, so that something may be missing."""


async def _free() -> None:
    """Count no call."""


async def extract_memory_updates(
    chosen: ChosenModel,
    reading: ConsolidationInput,
    summary: Budget,
    spend: Callable[[], Awaitable[None]] = _free,
) -> ConsolidationAnswer:
    """Ask the model, and where items cite several people, `spend` and ask once more. A refusal, by it or by
    the server, is an answer that is not whole. Errors of the model's library pass through."""
    question = consolidation_prompt(reading, summary)
    try:
        found = read_answer(await ask(chosen, "consolidation", question, _schema(reading)), summary)
    except REFUSED as error:
        refused = f"{type(error).__name__}: {line(str(error))}"
        return ConsolidationAnswer("", faults=(refused,), whole=False)
    quotes = partial(_transcript, reading)
    updates, faults = await with_one_author_each(chosen, reading, found.updates, quotes, spend)
    return replace(found, updates=updates, faults=(*found.faults, *faults))


def consolidation_prompt(reading: ConsolidationInput, summary: Budget) -> str:
    return render(
        "consolidation",
        now=clock(reading.now, reading.zone),
        previous=_quoted(_previous(reading) or ["(none yet)"]),
        known=_quoted(_known(reading) or ["(nothing)"]),
        noted=_facts(reading, reading.stored, STORED),
        near=_facts(reading, reading.near, NEAR),
        messages=_transcript(reading),
        focus=read(f"focus_{reading.mode}"),
        more="".join(f', "{name}": …' for name in _extras(reading)),
        characters=str(summary.characters),
        asked="\n".join(_asked(reading)),
    )


def read_answer(answer: str, summary: Budget) -> ConsolidationAnswer:
    """Parse and validate the model's answer, of whatever form it is."""
    found, closed = _object_in(answer)
    faults = [] if found and closed else ["the answer is cut off, or not the object that was asked for"]
    updates = _without_echoes(Findings.model_validate(found, context=faults))
    rest = _Rest.model_validate(found, context=faults)
    faults += [] if "summary" in found or not found else ["summary: it is missing"]
    listed = [found.get(name) or [] for name in Findings.model_fields]
    lists = all(isinstance(one, list) and not any(isinstance(item, str) for item in one) for one in listed)
    return ConsolidationAnswer(
        summary=lines_that_fit(_without_echoed_lines(rest.summary), summary),
        updates=updates,
        memory_summary=lines_that_fit(rest.memory_summary or "", MEMORY_SUMMARY),
        rulings=tuple(one for one in rest.rulings if one.ruling != "both"),
        faults=tuple(faults),
        whole=closed and lists and isinstance(found.get("summary"), str),
    )


def _without_echoes(updates: Findings) -> Findings:
    """Leave out what a small model copied out of the prompt, such as a heading."""
    facts = [fact for fact in updates.new_facts if not is_echo(fact.text)]
    tasks = [task for task in updates.task_updates if not is_echo(task.description)]
    return updates.model_copy(update={"new_facts": tuple(facts), "task_updates": tuple(tasks)})


def _without_echoed_lines(text: str) -> str:
    return "\n".join(part for part in text.splitlines() if not is_echo(part))


def quoted_summary(reading: ConsolidationInput, summary: Budget) -> str:
    """Return the summary without a model: the newest lines of the one before, and of what people said since
    then in their words, that fit."""
    said = [*reading.earlier, *(one.message for one in reading.said)]
    quoted = [f"{speaker(one.author)}: {line(one.text, LONGEST_QUOTE)}" for one in said]
    lines = dict.fromkeys([*reading.summary.splitlines(), *quoted])
    return "\n".join(newest_that_fit([(text, text) for text in [*lines][-MOST_QUOTES:]], summary))


def _object_in(answer: str) -> tuple[dict[str, Any], bool]:
    """Return what was asked for, wherever and in however many objects it stands, and whether the end of each
    was written. Of one that is cut off, all up to the last item that is whole; without one nothing."""
    whole, closed = up_to_the_last_end(answer)
    values = [one.value for one in objects_in(answer if closed else whole)]
    found: dict[str, Any] = {}
    for number, one in enumerate(_asked_for(values)):
        for name, value in one.items():
            before = found.get(name)
            if isinstance(before, list) and isinstance(value, list):
                # Rulings name new facts by their number in the first.
                found[name] = before if name == "rulings" else [*before, *value]
            elif value or not number:
                found[name] = value
    return found, closed


def _asked_for(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects in a value that have a field which was asked for."""
    if isinstance(value, dict) and not value.keys().isdisjoint(("summary", *Findings.model_fields)):
        yield value
        return
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for part in inner:
        yield from _asked_for(part)


@dataclass(frozen=True)
class NamedFacts:
    """What an answer does to facts that the prompt showed, which it names by ids or numbers."""

    on_new: Mapping[int, Mapping[str, Ruling]]
    """What new facts, by their numbers, do to known ones, by their ids."""
    on_stored: Sequence[tuple[str, str, Ruling]]
    """(new, old, ruling) of two stored facts."""
    corrected: Mapping[int, str]
    """The ids of known facts that new ones correct, by the numbers of these."""

    @classmethod
    def of(
        cls,
        reading: ConsolidationInput,
        found: ConsolidationAnswer,
        refused: Collection[tuple[str, str]] = (),
    ) -> "NamedFacts":
        """Read it without the `refused` replacements: a new fact, as ``#1`` or an id, and the known one."""
        shown = tuple(dict.fromkeys(fact.id for fact in reading.facts))
        on_new: dict[int, dict[str, Ruling]] = {}
        on_stored: list[tuple[str, str, Ruling]] = []
        for one in found.rulings:
            named, old = one.new.strip(), _id_among(shown, one.old)
            number, new = named.removeprefix("#"), _id_among(shown, named)
            if old is None or one.ruling == "both" or not {(named, old), (new, old)}.isdisjoint(refused):
                continue
            if named != number and number.isdecimal():
                on_new.setdefault(int(number), {})[old] = one.ruling
            elif new:
                on_stored.append((new, old, one.ruling))
        corrected = {fact.number: _id_among(shown, fact.replaces or "") for fact in found.updates.new_facts}
        kept = {n: id for n, id in corrected.items() if id and (f"#{n}", id) not in refused}
        return cls(on_new, on_stored, kept)

    @property
    def ended(self) -> frozenset[str]:
        """The ids of the known facts that may give way."""
        replaced = {old for ruled in self.on_new.values() for old, how in ruled.items() if how == "replaces"}
        return frozenset(
            {*replaced, *self.corrected.values(), *(id for one in self.on_stored for id in one[:2])}
        )


def _id_among(shown: Sequence[str], written: str) -> str | None:
    """Return the one id that is written so, or begins so."""
    short = read_id(written)
    found = [id for id in shown if id == short or (len(short) >= SHORT_ID and id.startswith(short))]
    return found[0] if len(found) == 1 else None


# The parts of the prompt. Each is quoted, so that nothing that people said can pass for a line of ours.


def _quoted(lines: Iterable[str]) -> str:
    return "\n".join(f"> {text}" for text in lines)


def _previous(reading: ConsolidationInput) -> list[str]:
    """Return the summary so far or, where it was withheld, what people said before: the newest lines that
    fit, in order, each with its time."""
    if reading.summary:
        return [line(text, None) for text in reading.summary.splitlines()]
    said = [
        f'[{moment(one.sent_at, reading.zone)}] "{speaker(one.author)}": {joined(both_ends(one.text))}'
        for one in reading.earlier
    ]
    return newest_that_fit([(text, text) for text in said], REREAD)


def _transcript(reading: ConsolidationInput, only: Collection[int] = ()) -> str:
    """Quote the messages, a line each, or `only` those of people with these numbers. Only the companion's
    lines begin with =>."""
    lines, number = list[str](), 0
    for message in (one.message for one in reading.lines):
        replied = message.role == "assistant"
        number += not replied
        if only and (replied or number not in only):
            continue
        text = both_ends(message.text)
        told = f"=> {joined(text)}" if replied else numbered(number, message.author, text)
        lines.append(f"[{moment(message.sent_at, reading.zone)}] {told}")
    return _quoted(lines or ["(nothing new)"])


def _known(reading: ConsolidationInput) -> list[str]:
    """Return what is known of each person, below their name."""
    lines = list[str]()
    for person in reading.people:
        budget = replace(KNOWN, amount=KNOWN.amount // len(reading.people))
        known = serialize_user_context_snippet(person.known, budget, KNOWN_FACTS, now=reading.now)
        told = [text.removeprefix("> ") for text in known.splitlines()]
        lines += [f'"{speaker(person.name)}":', *(told or ["(nothing)"])]
    return lines


def _facts(reading: ConsolidationInput, facts: Sequence[Memory], budget: Budget) -> str:
    """Return one line per fact, as many as fit the budget: in a place with who told it, in private with where
    others were told."""
    names = {person.user: person.name for person in reading.people}
    if reading.place.private:
        notes = {fact.id: fact.place for fact in facts if fact.place != str(reading.place)}
    else:
        notes = {fact.id: speaker(names.get(fact.user_id, fact.user_id)) for fact in facts}
    return _that_fit(fact_lines(facts, reading.zone, reading.now, notes), budget)


def _that_fit(lines: Iterable[str], budget: Budget) -> str:
    purse = Purse(budget)
    return _quoted([text for text in lines if purse.take(text)] or ["(nothing)"])


def _asked(reading: ConsolidationInput) -> Iterator[str]:
    if reading.no_longer:
        yield render("consolidation_no_longer", facts=_that_fit(reading.no_longer, STORED))
    if reading.to_summarise:
        facts = _facts(reading, reading.to_summarise, TO_SUMMARISE)
        yield render("consolidation_memory_summary", facts=facts)
    if reading.rulable:
        yield read("consolidation_rulings")


def _extras(reading: ConsolidationInput) -> dict[str, dict[str, Any]]:
    """Return the fields that are not always asked for, with their schemas."""
    asked = {"memory_summary": _TEXT | {"maxLength": 500}} if reading.to_summarise else {}
    ruling = {"type": "string", "enum": [*RULINGS, "both"]}
    return asked | ({"rulings": _list_of(new=_TEXT, old=_TEXT, ruling=ruling)} if reading.rulable else {})


def _schema(reading: ConsolidationInput) -> dict[str, Any]:
    """Return the answer's JSON schema. Without its bounds OpenAI's strict mode accepts it."""
    optional = {"type": ["string", "null"], "maxLength": 36}
    cited = {"type": "array", "items": {"type": "integer"}, "maxItems": 4}
    return strict_object(
        summary=_TEXT | {"maxLength": 1_000},
        new_facts=_list_of(
            text=_TEXT,
            messages=cited,
            importance={"type": "string", "enum": ["low", "medium", "high"]},
            tags={"type": "array", "items": _TEXT | {"maxLength": 40}, "maxItems": 4},
            ttl=optional,
            replaces=optional,
        ),
        new_preferences=_list_of(key=_TEXT, value=_TEXT, messages=cited, replaces=optional),
        task_updates=_list_of(
            id=optional,
            description=_TEXT,
            messages=cited,
            status={"type": "string", "enum": ["open", "in_progress", "done"]},
        ),
        **_extras(reading),
    )


_TEXT = {"type": "string", "maxLength": 160}


def _list_of(**fields: Any) -> dict[str, Any]:
    return {"type": "array", "items": strict_object(**fields), "maxItems": 4}
