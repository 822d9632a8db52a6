"""A model's rulings on two facts of one person, and what follows from each.

The words of two facts prove little; a model may rule on what they leave open. It may replace across numbers
and names, but only for owners for whom the same person stated both, and only what was stated before.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Literal

from memory.facts.candidate import CandidateFact, Provenance
from memory.facts.compare import Verdict
from memory.facts.decide import Step
from memory.facts.ttl import describe
from memory.records import Action, Decision, Draft, Memory

Ruling = Literal["replaces", "same", "ignore"]
"""What the new fact does to the old one: ends it; says the same; says nothing beyond it."""

RULINGS: Mapping[Ruling, Verdict] = MappingProxyType(
    {
        "replaces": Verdict("contradiction", "a model judged that it takes its place"),
        "same": Verdict("same", "a model judged that both say the same"),
        "ignore": Verdict("subsumed", "a model judged that it was said already"),
    }
)


def as_candidate(memory: Memory, origin: Provenance, now: datetime) -> CandidateFact:
    """The stored fact as a candidate again, as `origin.user` stated it."""
    ttl = describe(memory.expires_at - memory.created_at) if memory.expires_at else None
    draft = Draft(memory.content, memory.subjects, ttl, memory.type, memory.importance)
    said = Provenance(
        origin.user,
        memory.created_at,
        origin.place,
        message_id=memory.message_id,
        live=True,
        everybody=origin.everybody,
    )
    return CandidateFact(draft, said, None, now)


def allowed(candidate: CandidateFact, old: Memory, verdict: Verdict) -> Verdict:
    """The verdict, or "different" where it may not be followed: only a newer statement replaces, and one that
    holds for a time does not end a permanent one."""
    if verdict.relation != "contradiction":
        return verdict
    if not candidate.newer_than(old):
        return Verdict("different", "was not said later")
    if candidate.expires_at is not None and old.expires_at is None:
        return Verdict("different", "holds for a time only")
    return verdict


def step_of(candidate: CandidateFact, new: Memory, old: Memory, ruling: Ruling) -> Step | None:
    """What a ruling on two stored facts changes: the fact that steps back, and for which owners. None if it
    changes nothing."""
    verdict = allowed(candidate, old, RULINGS[ruling])
    back = old if verdict.relation == "contradiction" else new
    owners = candidate.decides_for(old) & candidate.decides_for(new) & candidate.origin.owners
    if verdict.relation == "different" or new.id == old.id or not owners:
        return None
    return Step(back, owners, verdict)


def ruled_decision(candidate: CandidateFact, new: Memory, old: Memory, step: Step) -> Decision:
    """The decision that applies a ruling on two stored facts."""
    if step.memory is old:
        return candidate.decision("replace", new, step.verdict.reason, target=old)
    action: Action = "merge" if step.verdict.relation == "same" else "ignore"
    return candidate.decision(action, old, step.verdict.reason, target=old)
