"""Store many facts at once: without a model some thousand a second.

Without a model, only the same words relate two facts. So facts whose words are new to their owners are stored
hundreds per transaction. Other facts are decided one by one: those that correct a fact, link two names, or
contain a name of a person with several names.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.facts.aliases import names_in
from memory.facts.candidate import CandidateFact, Provenance
from memory.facts.decide import deciding_owners
from memory.facts.decision_log import count_candidates, decision_run
from memory.facts.fact_rows import NOT_SEARCHED
from memory.facts.refusal import refusal
from memory.facts.writer import FactWriter
from memory.index.embedders import embed_if_possible
from memory.process.spans import span
from memory.records import Decision, Memory, NewMemory
from memory.sql.engine.errors import retried
from memory.sql.tables import memory_owners

PER_TRANSACTION = 500
"""How many facts are stored in one transaction …"""
PER_JUDGE_CALL = 10
"""… and how many are sent to a model in one call, if a model rules on facts."""

Stated = Sequence[tuple[NewMemory, Provenance]]


async def remember_many(
    writer: FactWriter, stated: Stated, progress: Callable[[int], None] | None = None
) -> list[Decision]:
    """Decide on many facts as `FactWriter` does, but without listing similar facts. Calls `progress` with the
    number of newly stored ones. The index is updated later."""
    judged = writer.similar.judge is not None
    decisions: list[Decision] = []
    with decision_run(writer.logged), span("decision"):
        while part := _same_owners(stated[len(decisions) :][: PER_JUDGE_CALL if judged else PER_TRANSACTION]):
            decided_on = await (writer.remember_each(part) if judged else _store(writer, part))
            decisions += decided_on
            if progress:
                progress(len(decided_on))
    writer.indexing.wake()
    return decisions


def _same_owners(stated: Stated) -> Stated:
    """Return the leading facts that have the same owners and audience."""
    first = [(origin.owners, origin.audience) for _, origin in stated[:1]]
    return [*takewhile(lambda one: [(one[1].owners, one[1].audience)] == first, stated)]


async def _store(writer: FactWriter, stated: Stated) -> list[Decision]:
    """Decide on facts for the same owners."""
    facts = await writer.candidates(stated, {}, embed=False)
    count_candidates(facts)
    decisions: list[Decision] = []
    while undecided := facts[len(decisions) :]:
        stored = await retried(partial(_store_together, writer, undecided))
        if not stored:
            [vector] = await embed_if_possible(writer.similar.embedder, [undecided[0].proposed.content])
            decision, _ = await writer.decide(replace(undecided[0], vector=vector))
            stored = [decision]
        decisions += stored
    for fact, decision in zip(facts, decisions, strict=True):
        writer.note(fact.origin, decision)
    return decisions


async def _store_together(writer: FactWriter, facts: Sequence[CandidateFact]) -> list[Decision]:
    """Decide on the leading facts in one transaction. It stops before a fact that needs a search."""
    origin, now = facts[0].origin, facts[0].now
    decisions: list[Decision] = []
    new: dict[str, Memory] = {}
    async with writer.database.write(lock=origin.owners) as connection:
        aliases = await writer.store.aliases(origin.audience.keys, now, connection)
        owned = memory_owners.c.owner.in_(origin.owners)
        same = memory_owners.c.content_key.in_({fact.key for fact in facts})
        used = set(await connection.scalars(select(memory_owners.c.content_key).where(owned, same)))
        for fact in facts:
            content, decision = fact.proposed.content, refusal(fact, writer.importance_floor)
            if decision is None and fact.key in used | new.keys():
                await writer.store.insert(connection, new, now)
                used, new = used | new.keys(), {}
                decision = await _stored_verbatim(writer, connection, fact)
            elif decision is None and not (
                fact.proposed.replaces or names_in(content) or aliases.other_names(content)
            ):
                memory = new[fact.key] = fact.memory(fact.origin.owners)
                fact.made.add(memory.id)
                decision = fact.decision("add", memory, "new")
            if decision is None:
                break
            decisions.append(decision)
        await writer.store.insert(connection, new, now)
    return decisions


async def _stored_verbatim(
    writer: FactWriter, connection: AsyncConnection, fact: CandidateFact
) -> Decision | None:
    """Decide on a fact that each owner already has in the same words; None if an owner does not."""
    comparable = await writer.store.comparable_facts(connection, fact.origin.owners, fact.key, fact.now)
    if deciding_owners(fact, fact.still_valid(comparable.worded_so)):
        return None
    decision, _ = await writer.rows.store_decision(connection, fact, NOT_SEARCHED)
    return decision
