"""Read the rulings of a consolidation on facts that its prompt showed, and confirm doubtful ones.

A model that names a wrong id would supersede an active fact: "plays padel" does not replace "is allergic to
peanuts". So it is asked again, with both texts, about a replacement between unrelated facts. If it does not
confirm, both stay.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.background.consolidation.answer import ConsolidationAnswer
from agent.background.consolidation.input import ConsolidationInput
from agent.models.ask import judge
from agent.models.choice.choose import ChosenModel
from memory.facts.decide import Ruling
from memory.facts.similar import Doubt, SimilarFacts
from memory.records import Memory, NewMemory
from memory.text.short_ids import SHORT_ID, read_id

log = logging.getLogger("hachi.consolidation")

Pair = tuple[str, str]
"""A new fact, as ``#1`` or by its id, and the id of the fact that it replaces."""


@dataclass(frozen=True)
class AnswerRulings:
    """The rulings of an answer, which names facts by ids or numbers."""

    on_new: Mapping[int, Mapping[str, Ruling]]
    """The rulings of new facts, by number, on stored ones, by id."""
    on_stored: Sequence[tuple[str, str, Ruling]]
    """(new, old, ruling) of two stored facts."""
    corrected: Mapping[int, str]
    """The ids of stored facts that new facts correct, by the new fact's number."""

    @classmethod
    def of(
        cls, reading: ConsolidationInput, answer: ConsolidationAnswer, refused: Collection[Pair] = ()
    ) -> "AnswerRulings":
        """Read the rulings of an answer, without the `refused` replacements."""
        shown = tuple(dict.fromkeys(fact.id for fact in reading.facts))
        on_new: dict[int, dict[str, Ruling]] = {}
        on_stored: list[tuple[str, str, Ruling]] = []
        for one in answer.rulings:
            named, old = one.new.strip(), _id_among(shown, one.old)
            number, new = named.removeprefix("#"), _id_among(shown, named)
            if old is None or one.ruling == "both" or not {(named, old), (new, old)}.isdisjoint(refused):
                continue
            if named != number and number.isdecimal():
                on_new.setdefault(int(number), {})[old] = one.ruling
            elif new:
                on_stored.append((new, old, one.ruling))
        corrected = {fact.number: _id_among(shown, fact.replaces or "") for fact in answer.new_facts}
        kept = {n: id for n, id in corrected.items() if id and (f"#{n}", id) not in refused}
        return cls(on_new, on_stored, kept)

    @property
    def ended(self) -> frozenset[str]:
        """The ids of the stored facts that may be superseded."""
        replaced = {old for ruled in self.on_new.values() for old, how in ruled.items() if how == "replaces"}
        return frozenset(
            {*replaced, *self.corrected.values(), *(id for one in self.on_stored for id in one[:2])}
        )


def _id_among(shown: Sequence[str], written: str) -> str | None:
    """Return the id that the text is or begins; None if there is not exactly one."""
    short = read_id(written)
    found = [id for id in shown if id == short or (len(short) >= SHORT_ID and id.startswith(short))]
    return found[0] if len(found) == 1 else None


async def confirmed_rulings(
    chosen: ChosenModel | None,
    similar: SimilarFacts,
    reading: ConsolidationInput,
    answer: ConsolidationAnswer,
    spend: Callable[[], Awaitable[None]],
) -> AnswerRulings:
    """Return the rulings of an answer without replacements that the model does not confirm. `spend` counts
    the call before it is made."""
    named = AnswerRulings.of(reading, answer)
    known: dict[str, Memory] = {fact.id: fact for fact in reading.facts}
    doubts: dict[Pair, Doubt] = {}
    for pair, new_memory, user, doubt in _replacements(reading, answer, named, known):
        if not await similar.related(new_memory, known[pair[1]], user):
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
    return AnswerRulings.of(reading, answer, refused)


def _replacements(
    reading: ConsolidationInput,
    answer: ConsolidationAnswer,
    named: AnswerRulings,
    known: Mapping[str, Memory],
) -> Iterator[tuple[Pair, NewMemory, str, Doubt]]:
    for fact in answer.new_facts:
        lines = reading.sources(fact.messages)
        ended = {old for old, how in named.on_new.get(fact.number, {}).items() if how == "replaces"}
        ended |= {named.corrected[fact.number]} if fact.number in named.corrected else set()
        for old in sorted(ended) if lines else ():
            said_at = lines[-1].message.sent_at
            doubt = Doubt(known[old].content, known[old].created_at, fact.text, said_at)
            yield (f"#{fact.number}", old), NewMemory(fact.text, fact.tags), lines[-1].user, doubt
    for new, old, ruling in named.on_stored:
        if ruling == "replaces":
            one, other = known[new], known[old]
            doubt = Doubt(other.content, other.created_at, one.content, one.created_at)
            yield (new, old), NewMemory(one.content, one.subjects), one.user_id, doubt
