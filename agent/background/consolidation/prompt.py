"""Write the prompt of a consolidation, by `prompts/consolidation.md`.

What people wrote is quoted everywhere, so that it cannot pass for Hachi's instructions.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from agent.background.consolidation.input import MOST_FACTS, ConsolidationInput, without_middle
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

USER_CONTEXT = Budget(1_500)
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
        talk, characters = transcript(reading), str(min(summary.characters, SHORT_SUMMARY))
        return render("consolidation_short", now=now, previous=previous, messages=talk, characters=characters)
    optional = _optional_parts(reading)
    ended = _fitting(reading.no_longer, STORED)
    no_longer = [render("consolidation_no_longer", facts=ended)] if reading.no_longer else []
    return render(
        "consolidation",
        now=now,
        previous=previous,
        known=_quoted(_known_facts(reading) or ["(nothing)"]),
        noted=_facts(reading, reading.stored, STORED),
        near=_facts(reading, reading.near, NEAR),
        messages=transcript(reading),
        focus=read(f"focus_{reading.mode}"),
        more="".join(f', "{name}": …' for name in optional),
        characters=str(summary.characters),
        asked="\n".join([*no_longer, *optional.values()]),
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
        parts["follow_ups"] = render("consolidation_follow_ups", planned=_fitting(planned, STORED))
    return parts


def _quoted(lines: Iterable[str]) -> str:
    return "\n".join(f"> {text}" for text in lines)


def _previous(reading: ConsolidationInput) -> list[str]:
    """Return the previous summary. If it was withheld, return the earlier messages of people instead: the
    newest that fit, in order, with their times."""
    if reading.summary:
        return [line(text, None) for text in reading.summary.splitlines()]
    messages = [
        f'[{moment(one.sent_at, reading.zone)}] "{speaker(one.author)}": {joined(without_middle(one.text))}'
        for one in reading.earlier
    ]
    return newest_that_fit([(text, text) for text in messages], REREAD)


def transcript(reading: ConsolidationInput, only: Collection[int] = ()) -> str:
    """Quote the messages, one a line; with `only`, those of people with these numbers. Only the companion's
    lines begin with =>."""
    lines, number = list[str](), 0
    for message in (one.message for one in reading.lines):
        replied = message.role == "assistant"
        number += not replied
        if only and (replied or number not in only):
            continue
        text = without_middle(message.text)
        quoted = f"=> {joined(text)}" if replied else numbered(number, message.author, text)
        lines.append(f"[{moment(message.sent_at, reading.zone)}] {quoted}")
    return _quoted(lines or ["(nothing new)"])


def _known_facts(reading: ConsolidationInput) -> list[str]:
    """Return the facts and profile of each person, below their name."""
    lines = list[str]()
    for person in reading.people:
        budget = replace(USER_CONTEXT, amount=USER_CONTEXT.amount // len(reading.people))
        snippet = serialize_user_context_snippet(person.known, budget, MOST_FACTS, now=reading.now)
        context_lines = [text.removeprefix("> ") for text in snippet.splitlines()]
        lines += [f'"{speaker(person.name)}":', *(context_lines or ["(nothing)"])]
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
    return _fitting(fact_lines(facts, reading.zone, reading.now, notes), budget)


def _fitting(lines: Iterable[str], budget: Budget) -> str:
    purse = Purse(budget)
    return _quoted([text for text in lines if purse.take(text)] or ["(nothing)"])
