"""Call the model for a consolidation, and ask again about items that cite messages of several people.

If the model does not say who stated an item, it belongs to the person whose messages contain its names and
values. If that is nobody or several people, the item is dropped.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated

import openai
from agents import ModelRefusalError

from agent.background.consolidation.answer import (
    ITEMS,
    Cited,
    ConsolidationAnswer,
    Item,
    NewPreference,
    Written,
    list_schema,
    read_answer,
    schema_of,
)
from agent.background.consolidation.input import ConsolidationInput
from agent.background.consolidation.prompt import consolidation_prompt, omitted_fields, transcript
from agent.models.ask import ask
from agent.models.choice.choose import ChosenModel
from agent.models.json_objects import object_with
from agent.turn.context.budget import newest_that_fit
from agent.turn.context.echoes import our_sentences
from agent.turn.context.user_snippet import line
from agent.types.budget import Budget
from memory.index.bm25 import stems
from memory.process.breaker import NotNow
from memory.text.quoting import speaker
from prompts import render

REFUSED = (ModelRefusalError, openai.BadRequestError, openai.UnprocessableEntityError)
"""The exceptions for a refusal by the model or its server."""
MOST_QUOTES, LONGEST_QUOTE = 5, 240
"""How many messages a summary without a model quotes, and how many characters of each."""
_WORD = re.compile(r"\w+")


class _Citation(Written):
    note: Cited = ()
    """The number of the item."""
    messages: Cited = ()


class _Citations(Written):
    citations: Annotated[tuple[_Citation, ...], list_schema(schema_of(_Citation))] = ()


async def _free() -> None:
    """Count no call."""


async def extract_memory_updates(
    chosen: ChosenModel,
    reading: ConsolidationInput,
    summary: Budget,
    spend: Callable[[], Awaitable[None]] = _free,
) -> ConsolidationAnswer:
    """Ask the model, and if items cite several people, `spend` and ask once more. If the model or its server
    refuses, the answer is incomplete. Errors of the model's library are raised."""
    question = consolidation_prompt(reading, summary)
    form = schema_of(ConsolidationAnswer, omitted_fields(reading))
    try:
        written = await ask(chosen, "consolidation", question, form)
        answer = read_answer(written, summary, our_sentences([question]))
    except REFUSED as error:
        refused = f"{type(error).__name__}: {line(str(error))}"
        return ConsolidationAnswer(faults=(refused,), whole=False)
    return await _with_single_authors(chosen, reading, answer, spend)


def quoted_summary(reading: ConsolidationInput, summary: Budget) -> str:
    """Return a summary without a model: the newest lines that fit, from the last summary and from people's
    later messages."""
    messages = [*reading.earlier, *(one.message for one in reading.from_people)]
    quoted = [f"{speaker(one.author)}: {line(one.text, LONGEST_QUOTE)}" for one in messages]
    lines = dict.fromkeys([*reading.summary.splitlines(), *quoted])
    return "\n".join(newest_that_fit([(text, text) for text in [*lines][-MOST_QUOTES:]], summary))


async def _with_single_authors(
    chosen: ChosenModel,
    reading: ConsolidationInput,
    answer: ConsolidationAnswer,
    spend: Callable[[], Awaitable[None]],
) -> ConsolidationAnswer:
    """Return the answer such that each item cites messages of at most one person; `faults` name the items
    that cite none. `spend` counts the call before it is made; if it raises NotNow, only words decide."""
    lists: dict[str, list[Item]] = {name: [*getattr(answer, name)] for name in ITEMS}
    mixed = [
        (items, at, f"{name}[{at}]")
        for name, items in lists.items()
        for at, item in enumerate(items)
        if len({cited.user for cited in reading.cited(item.messages)}) > 1
    ]
    if not mixed:
        return answer
    stating: Mapping[int, Sequence[int]] = {}
    with suppress(*REFUSED, NotNow):
        await spend()
        stating = await _ask_again(chosen, reading, [items[at] for items, at, _ in mixed])
    faults = [*answer.faults]
    for number, (items, at, where) in enumerate(mixed, 1):
        item = items[at]
        named = tuple(message for message in stating.get(number, ()) if message in item.messages)
        messages = named if named and reading.sources(named) else _by_words(reading, item)
        items[at] = item.model_copy(update={"messages": messages})
        if not messages:
            faults.append(f"{where}: it cites several people, and nobody alone states it")
    updated = {name: tuple(items) for name, items in lists.items()}
    return answer.model_copy(update={**updated, "faults": tuple(faults)})


async def _ask_again(
    chosen: ChosenModel, reading: ConsolidationInput, items: Sequence[Item]
) -> Mapping[int, Sequence[int]]:
    """Return the messages that state each item, by the item's number from 1, as far as the model says."""
    notes = "\n".join(f"> #{number} {line(item.words)}" for number, item in enumerate(items, 1))
    cited = {number for item in items for number in item.messages}
    question = render("consolidation_citations", messages=transcript(reading, cited), notes=notes)
    written = await ask(chosen, "consolidation_citations", question, schema_of(_Citations))
    answer = _Citations.model_validate(object_with(written, "citations") or {})
    return {note: one.messages for one in answer.citations for note in one.note}


def _by_words(reading: ConsolidationInput, item: Item) -> tuple[int, ...]:
    """Return the cited messages of the only person whose messages and name contain the item's names and
    values, as far as any cited message has them."""
    numbers, words = dict[str, list[int]](), dict[str, frozenset[int]]()
    for number in item.messages:
        for cited in reading.cited([number]):
            numbers.setdefault(cited.user, []).append(number)
            signed = f"{cited.message.author} {cited.message.text}"
            words[cited.user] = words.get(cited.user, frozenset()) | stems(signed)
    every = isinstance(item, NewPreference)
    marks = [word for word in _WORD.findall(item.words) if every or not word.islower()]
    telling = stems(" ".join(marks)) & frozenset[int]().union(*words.values())
    holding = [user for user, stemmed in words.items() if telling <= stemmed]
    return tuple(numbers[holding[0]]) if telling and len(holding) == 1 else ()
