"""Read the rulings of a consolidation on facts that its prompt showed, and confirm doubtful ones.

A model that names a wrong id would supersede an active fact: "plays padel" does not replace "is allergic to
peanuts". So it is asked again, with both texts, about a replacement between unrelated facts. If it does not
confirm, both stay.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from agent.background.consolidation.answer import ConsolidationAnswer, NewFact
from agent.background.consolidation.input import ConsolidationInput
from agent.models.ask import judge
from agent.models.choice.choose import ChosenModel
from memory.facts.decide import Ruling
from memory.facts.similar import Doubt, SimilarFacts
from memory.records import Memory, NewMemory
from memory.text.quoting import SHORT_ID, read_id

log = logging.getLogger("hachi.consolidation")


@dataclass(frozen=True, slots=True)
class AnswerRuling:
    """A ruling of an answer on two facts."""

    new: NewFact | Memory
    """A fact of the answer, or a stored one."""
    old: Memory
    ruling: Ruling
    by_fact: bool = False
    """Whether the new fact itself names the old one as what it corrects."""

    @property
    def pair(self) -> tuple[str, str]:
        return (f"#{self.new.number}" if isinstance(self.new, NewFact) else self.new.id, self.old.id)

    @property
    def may_end(self) -> set[str]:
        """The ids of the stored facts that may be superseded."""
        if isinstance(self.new, Memory):
            return {self.new.id, self.old.id}
        return {self.old.id} if self.ruling == "replaces" else set()


async def confirmed_rulings(
    chosen: ChosenModel | None,
    similar: SimilarFacts,
    reading: ConsolidationInput,
    answer: ConsolidationAnswer,
    spend: Callable[[], Awaitable[None]],
) -> list[AnswerRuling]:
    """Return the rulings of an answer, except doubtful replacements that the model does not confirm. `spend`
    counts the call before it is made."""
    rulings = list(_named_rulings(reading, answer))
    doubts: dict[tuple[str, str], Doubt] = {}
    for ruling in rulings:
        if ruling.ruling == "replaces" and (stated := _statement(reading, ruling.new)):
            new, author, said_at = stated
            if not await similar.related(new, ruling.old, author):
                doubts[ruling.pair] = Doubt(ruling.old.content, ruling.old.created_at, new.content, said_at)
    if chosen is None or not doubts:
        return rulings
    confirmed = [False] * len(doubts)
    try:
        await spend()
        confirmed = await judge(chosen, [*doubts.values()])
    except Exception as error:
        log.warning("replacements could not be confirmed, so both facts stay: %s", error)
    refused = {pair for pair, sure in zip(doubts, confirmed, strict=True) if not sure}
    return [ruling for ruling in rulings if ruling.pair not in refused]


def _named_rulings(reading: ConsolidationInput, answer: ConsolidationAnswer) -> Iterator[AnswerRuling]:
    """Yield the rulings whose facts are among those of the answer and of the prompt."""
    facts = {fact.id: fact for fact in reading.facts}
    numbered = {f"#{fact.number}": fact for fact in answer.new_facts}
    for ruling in answer.rulings:
        old, new = _named(facts, ruling.old), numbered.get(ruling.new.strip()) or _named(facts, ruling.new)
        if new and old and ruling.ruling != "both":
            yield AnswerRuling(new, old, ruling.ruling)
    for fact in answer.new_facts:
        if old := _named(facts, fact.replaces or ""):
            yield AnswerRuling(fact, old, "replaces", by_fact=True)


def _named(facts: Mapping[str, Memory], written: str) -> Memory | None:
    """Return the fact whose id the text is or begins; None if there is not exactly one."""
    short = read_id(written)
    ids = [id for id in facts if id == short or (len(short) >= SHORT_ID and id.startswith(short))]
    return facts[ids[0]] if len(ids) == 1 else None


def _statement(reading: ConsolidationInput, fact: NewFact | Memory) -> tuple[NewMemory, str, datetime] | None:
    """Return a fact with its author and time; None if the author is unknown."""
    if isinstance(fact, Memory):
        return NewMemory(fact.content, fact.subjects), fact.user_id, fact.created_at
    if not (lines := reading.sources(fact.messages)):
        return None
    return NewMemory(fact.text, fact.tags), lines[-1].user, lines[-1].message.sent_at
