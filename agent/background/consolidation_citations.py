"""Whose an item of a consolidation's answer is that cites messages of several people.

The model is asked once more. Where it does not say, the item belongs to the person whose messages hold its
names and values. An item of which that is true of nobody, or of several, cites nothing then, and is dropped.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress

import openai
from agents import ModelRefusalError

from agent.background.consolidation_input import ConsolidationInput
from agent.models.ask import ask, strict_object
from agent.models.choice.choose import ChosenModel
from agent.models.json_objects import object_with
from agent.turn.context.user_snippet import line
from memory.index.bm25 import stems
from memory.people.findings import Cited, Findings, NewFact, NewPreference, TaskUpdate, numbers_in
from memory.process.breaker import NotNow
from prompts import render

REFUSED = (ModelRefusalError, openai.BadRequestError, openai.UnprocessableEntityError)
"""What a model or its server raises about what it does not answer."""
_WORD = re.compile(r"\w+")
_NUMBER = {"type": "integer"}
_CITATION = strict_object(note=_NUMBER, messages={"type": "array", "items": _NUMBER})
_SCHEMA = strict_object(citations={"type": "array", "items": _CITATION})


async def with_one_author_each(
    chosen: ChosenModel,
    reading: ConsolidationInput,
    updates: Findings,
    transcript: Callable[[Collection[int]], str],
    spend: Callable[[], Awaitable[None]],
) -> tuple[Findings, list[str]]:
    """Return the updates, each of which cites one person's messages or none, and say which cite none now.
    `transcript` quotes the messages with these numbers. `spend` counts the call before it is made; where it
    raises NotNow, the words alone decide. Errors of the model's library pass through."""
    lists: dict[str, list[Cited]] = {name: [*items] for name, items in updates}
    mixed = [
        (items, at, f"{name}[{at}]")
        for name, items in lists.items()
        for at, item in enumerate(items)
        if len({said.user for said in reading.cited(item.messages)}) > 1
    ]
    if not mixed:
        return updates, []
    answered: Mapping[int, Sequence[int]] = {}
    with suppress(*REFUSED, NotNow):
        await spend()
        answered = await _ask(chosen, [items[at] for items, at, _ in mixed], transcript)
    faults = list[str]()
    for number, (items, at, where) in enumerate(mixed, 1):
        item = items[at]
        told = tuple(number for number in answered.get(number, ()) if number in item.messages)
        messages = told if told and reading.sources(told) else _by_words(reading, item)
        items[at] = item.model_copy(update={"messages": messages})
        if not messages:
            faults.append(f"{where}: it cites several people, and none of them alone says it")
    return updates.model_copy(update={name: tuple(items) for name, items in lists.items()}), faults


async def _ask(
    chosen: ChosenModel, items: Sequence[Cited], transcript: Callable[[Collection[int]], str]
) -> Mapping[int, Sequence[int]]:
    """Return which messages state each item, by its number from 1, as far as the model says."""
    notes = "\n".join(f"> #{number} {line(_says(item))}" for number, item in enumerate(items, 1))
    cited = {number for item in items for number in item.messages}
    question = render("consolidation_citations", messages=transcript(cited), notes=notes)
    found = object_with(await ask(chosen, "consolidation_citations", question, _SCHEMA), "citations")
    listed = found["citations"] if found else ()
    rows = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return {note: numbers_in(one.get("messages")) for one in rows for note in numbers_in(one.get("note"))}


def _by_words(reading: ConsolidationInput, item: Cited) -> tuple[int, ...]:
    """Return the cited messages of the only person whose messages, signed with their name, hold all names and
    values of the item that any of them holds."""
    numbers, words = dict[str, list[int]](), dict[str, frozenset[int]]()
    for number in item.messages:
        for said in reading.cited([number]):
            numbers.setdefault(said.user, []).append(number)
            signed = f"{said.message.author} {said.message.text}"
            words[said.user] = words.get(said.user, frozenset()) | stems(signed)
    every = isinstance(item, NewPreference)
    marks = [word for word in _WORD.findall(_says(item)) if every or not word.islower()]
    telling = stems(" ".join(marks)) & frozenset[int]().union(*words.values())
    holding = [user for user, held in words.items() if telling <= held]
    return tuple(numbers[holding[0]]) if telling and len(holding) == 1 else ()


def _says(item: Cited) -> str:
    if isinstance(item, NewPreference):
        value = item.value if isinstance(item.value, tuple) else (item.value,)
        return f"{item.key}: {', '.join(map(str, value))}"
    return (
        item.text if isinstance(item, NewFact) else item.description if isinstance(item, TaskUpdate) else ""
    )
