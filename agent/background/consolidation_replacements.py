"""Asks once more about the replacements of a consolidation between facts that have nothing in common.

"Plays padel" does not end "is allergic to peanuts": a model that names a wrong id would end what still holds.
So it is shown both again, and where it does not say that one replaces the other, both stay.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator

from agent.background.consolidation_answer import ConsolidationAnswer, NamedFacts
from agent.background.consolidation_input import ConsolidationInput
from agent.models.choice.choose import ChosenModel
from agent.models.fact_judge import judge
from memory.facts.similar import Doubt, SimilarFacts
from memory.records import Draft, Memory

log = logging.getLogger("hachi.upkeep")

Pair = tuple[str, str]
"""A new fact, as ``#1`` or by its id, and the id of the one that it replaces."""


async def without_doubtful_replacements(
    chosen: ChosenModel | None,
    similar: SimilarFacts,
    reading: ConsolidationInput,
    found: ConsolidationAnswer,
    named: NamedFacts,
    spend: Callable[[], Awaitable[None]],
) -> NamedFacts:
    """Return the rulings without the replacements that the model does not confirm. `spend` counts the call
    before it is made."""
    doubts: dict[Pair, Doubt] = {}
    for pair, draft, user, doubt in _replacements(reading, found, named):
        old = next(fact for fact in reading.facts if fact.id == pair[1])
        if not await similar.related(draft, old, user):
            doubts[pair] = doubt
    if chosen is None or not doubts:
        return named
    confirmed = [False] * len(doubts)
    try:
        await spend()
        confirmed = await judge(chosen, [*doubts.values()])
    except Exception as error:
        log.warning("replacements could not be confirmed, so both facts stay: %s", error)
    refused = {pair for pair, sure in zip(doubts, confirmed, strict=True) if not sure}
    return NamedFacts.of(reading, found, refused)


def _replacements(
    reading: ConsolidationInput, found: ConsolidationAnswer, named: NamedFacts
) -> Iterator[tuple[Pair, Draft, str, Doubt]]:
    known: dict[str, Memory] = {fact.id: fact for fact in reading.facts}
    for fact in found.updates.new_facts:
        lines = reading.sources(fact.messages)
        ended = {old for old, how in named.on_new.get(fact.number, {}).items() if how == "replaces"}
        ended |= {named.corrected[fact.number]} if fact.number in named.corrected else set()
        for old in sorted(ended) if lines else ():
            said_at = lines[-1].message.sent_at
            doubt = Doubt(known[old].content, known[old].created_at, fact.text, said_at)
            yield (f"#{fact.number}", old), Draft(fact.text, fact.tags), lines[-1].user, doubt
    for new, old, ruling in named.on_stored:
        if ruling == "replaces":
            one, other = known[new], known[old]
            doubt = Doubt(other.content, other.created_at, one.content, one.created_at)
            yield (new, old), Draft(one.content, one.subjects), one.user_id, doubt
