"""Write the prompt of a consolidation, by `prompts/consolidation.md`.

What people wrote is quoted everywhere, so that it cannot pass for Hachi's instructions.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from agent.background.consolidation.input import KNOWN_FACTS, ConsolidationInput, both_ends
from agent.turn.context.budget import Purse, newest_that_fit
from agent.turn.context.user_snippet import (
    clock,
    fact_lines,
    line,
    moment,
    serialize_user_context_snippet,
)
from agent.types.budget import Budget
from agent.types.labels import place_label
from memory.audience import Place
from memory.records import Memory
from memory.text.quoting import SHORT_ID, joined, numbered, speaker
from prompts import read, render

KNOWN = Budget(1_500)
"""The budget for what is known of all authors. It is larger than in a turn: consolidation updates it."""
STORED = Budget(2_000)
NEAR = Budget(2_000)
TO_SUMMARISE = Budget(2_000)
SHORT_SUMMARY = 300
"""The most characters of a summary by a model with a small window."""
REREAD = Budget(3_000)
"""The budget for earlier messages, when a summary is rewritten."""
OPTIONAL_FIELDS = ("memory_summary", "rulings", "follow_ups")


def consolidation_prompt(reading: ConsolidationInput, summary: Budget) -> str:
    now, previous = clock(reading.now, reading.zone), _quoted(_previous(reading) or ["(none yet)"])
    if reading.narrow:
        said, characters = transcript(reading), str(min(summary.characters, SHORT_SUMMARY))
        return render("consolidation_short", now=now, previous=previous, messages=said, characters=characters)
    asked = _optional_parts(reading)
    ended = _that_fit(reading.no_longer, STORED)
    over = [render("consolidation_no_longer", facts=ended)] if reading.no_longer else []
    return render(
        "consolidation",
        now=now,
        previous=previous,
        known=_quoted(_known_facts(reading) or ["(nothing)"]),
        noted=_facts(reading, reading.stored, STORED),
        near=_facts(reading, reading.near, NEAR),
        messages=transcript(reading),
        focus=read(f"focus_{reading.mode}"),
        more="".join(f', "{name}": …' for name in asked),
        characters=str(summary.characters),
        asked="\n".join([*over, *asked.values()]),
    )


def omitted_fields(reading: ConsolidationInput) -> set[str]:
    """Return the fields that are not requested."""
    if reading.narrow:
        return {*OPTIONAL_FIELDS, "new_preferences", "task_updates"}
    return {*OPTIONAL_FIELDS} - _optional_parts(reading).keys()


def _optional_parts(reading: ConsolidationInput) -> dict[str, str]:
    """Return the optional fields that are requested, each with the part of the prompt that asks for it."""
    parts = dict[str, str]()
    if reading.to_summarise:
        facts = _facts(reading, reading.to_summarise, TO_SUMMARISE)
        parts["memory_summary"] = render("consolidation_memory_summary", facts=facts)
    if reading.rulable:
        parts["rulings"] = read("consolidation_rulings")
    if reading.check_ins is not None:
        planned = [
            f"[{one.id[:SHORT_ID]}] {moment(one.after, reading.zone)}: {line(one.about)}"
            for one in reading.check_ins
        ]
        parts["follow_ups"] = render("consolidation_follow_ups", planned=_that_fit(planned, STORED))
    return parts


def _quoted(lines: Iterable[str]) -> str:
    return "\n".join(f"> {text}" for text in lines)


def _previous(reading: ConsolidationInput) -> list[str]:
    """Return the previous summary. If it was withheld, return the earlier messages of people instead: the
    newest that fit, in order, with their times."""
    if reading.summary:
        return [line(text, None) for text in reading.summary.splitlines()]
    said = [
        f'[{moment(one.sent_at, reading.zone)}] "{speaker(one.author)}": {joined(both_ends(one.text))}'
        for one in reading.earlier
    ]
    return newest_that_fit([(text, text) for text in said], REREAD)


def transcript(reading: ConsolidationInput, only: Collection[int] = ()) -> str:
    """Quote the messages, one a line; with `only`, those of people with these numbers. Only the companion's
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


def _known_facts(reading: ConsolidationInput) -> list[str]:
    """Return the facts and profile of each person, below their name."""
    lines = list[str]()
    for person in reading.people:
        budget = replace(KNOWN, amount=KNOWN.amount // len(reading.people))
        known = serialize_user_context_snippet(person.known, budget, KNOWN_FACTS, now=reading.now)
        told = [text.removeprefix("> ") for text in known.splitlines()]
        lines += [f'"{speaker(person.name)}":', *(told or ["(nothing)"])]
    return lines


def _facts(reading: ConsolidationInput, facts: Sequence[Memory], budget: Budget) -> str:
    """Return one line per fact, as many as fit the budget: with its author in a place, and in private with
    the place of those from elsewhere."""
    names = {person.user: person.name for person in reading.people}
    if reading.place.private:
        notes = {
            fact.id: place_label(Place.parse(fact.place))
            for fact in facts
            if fact.place != str(reading.place)
        }
    else:
        notes = {fact.id: speaker(names.get(fact.user_id, fact.user_id)) for fact in facts}
    return _that_fit(fact_lines(facts, reading.zone, reading.now, notes), budget)


def _that_fit(lines: Iterable[str], budget: Budget) -> str:
    purse = Purse(budget)
    return _quoted([text for text in lines if purse.take(text)] or ["(nothing)"])
