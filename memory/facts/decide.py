"""Decides what happens to a candidate fact for each of its owners, given what they know. Pure functions.

Each owner is decided on separately: one may know the same words, an equivalent fact, one that the candidate
replaces, or nothing similar. The decision shows only what the people present may read.

The words of two facts prove little; a model may rule on what they leave open. It may replace across numbers
and names, but only for owners for whom the same person stated both, and only what was stated before.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Literal

from memory.facts.candidate import CandidateFact, Provenance
from memory.facts.compare import Relation, Verdict
from memory.records import Action, Decision, Draft, Memory
from memory.text.ttl import describe

Near = Sequence[tuple[Memory, Verdict]]

Ruling = Literal["replaces", "same", "ignore"]
"""What the new fact does to the old one: ends it; says the same; says nothing beyond it."""

RULINGS: Mapping[Ruling, Verdict] = MappingProxyType(
    {
        "replaces": Verdict("contradiction", "a model judged that it takes its place"),
        "same": Verdict("same", "a model judged that both say the same"),
        "ignore": Verdict("subsumed", "a model judged that it was said already"),
    }
)


@dataclass(frozen=True, slots=True)
class Step:
    """A memory, and the owners for whom it is replaced or already covers the candidate."""

    memory: Memory
    owners: frozenset[str]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Resolution:
    memory: Memory
    """The memory that states the fact after the decision: new or already known."""
    new: bool
    fresh: frozenset[str]
    """Owners that get this memory now."""
    covered: tuple[Step, ...]
    """Memories that already cover the candidate, with their owners."""
    outdated: tuple[Step, ...]
    """Newer memories that had already replaced what the candidate states, with their owners."""
    replaced: tuple[Step, ...]
    """Memories that the candidate replaces."""


def lacking_owners(candidate: CandidateFact, worded_so: Collection[str]) -> frozenset[str]:
    """The owners for whom similar memories count, where these have the same words."""
    owners = candidate.origin.owners
    return owners if candidate.draft.replaces else owners.difference(worded_so)


def has_expired(memory: Memory, now: datetime) -> bool:
    return memory.expires_at is not None and memory.expires_at <= now


def still_valid(
    candidate: CandidateFact, worded_so: Mapping[str, Memory]
) -> tuple[dict[str, Memory], dict[str, Memory]]:
    """The memories with the same words by owner, without those that the candidate corrects in something other
    than its words; and those that have expired, but are not purged yet."""
    expired = {owner: memory for owner, memory in worded_so.items() if has_expired(memory, candidate.now)}
    valid = {
        owner: memory
        for owner, memory in worded_so.items()
        if owner not in expired
        and not (candidate.corrects(memory) and owner in candidate.decides_for(memory))
    }
    return valid, expired


def resolve(candidate: CandidateFact, worded_so: Mapping[str, Memory], near: Near) -> Resolution:
    """Decide for every owner. `worded_so` has the memory with the same words of each owner that has one;
    `near` lists similar memories, the decisive ones first."""
    here = next((memory for memory in worded_so.values() if candidate.sees(memory)), None)
    covered, lacking = _shares(
        candidate, near, ("same", "subsumed"), candidate.origin.owners - set(worded_so)
    )
    outdated, fresh = _shares(candidate, near, ("outdated",), lacking)
    replaced = _replaced(candidate, near, fresh)
    if here is not None:
        return Resolution(here, False, fresh, covered, (), replaced)
    if lacking:
        memory = _new_memory(candidate, lacking, replaced)
        return Resolution(memory, True, fresh, covered, outdated, replaced)
    return Resolution(_seen(candidate, covered)[0].memory, False, fresh, covered, (), replaced)


def decision_of(candidate: CandidateFact, resolution: Resolution, near: Near) -> Decision:
    """The decision as the people present may see it."""
    memory = resolution.memory
    covered, replaced = _seen(candidate, resolution.covered), _seen(candidate, resolution.replaced)
    shown = not resolution.new or candidate.origin.audience.may_read(resolution.fresh)
    if shown and replaced:
        reason, old = replaced[0].verdict.reason, replaced[0].memory
        return candidate.decision("replace", memory, reason, target=old, close=_close(candidate, near))
    if resolution.new and shown:
        return candidate.decision("add", memory, "new", close=_close(candidate, near))
    if not resolution.new and memory not in [step.memory for step in covered]:
        return candidate.decision("ignore", memory, "known word for word", target=memory)
    first = (covered or _seen(candidate, resolution.outdated))[0]
    action: Action = "merge" if first.verdict.relation == "same" else "ignore"
    return candidate.decision(action, first.memory, first.verdict.reason, target=first.memory)


def figures_of(decisions: Sequence[Decision]) -> Counter[str]:
    """How many decisions there are of each action, and how many found that the fact was known already."""
    known = sum(d.action == "merge" or (d.action == "ignore" and d.target_id is not None) for d in decisions)
    return Counter(d.action for d in decisions) + Counter(decided=len(decisions), known=known)


def _shares(
    candidate: CandidateFact, near: Near, relations: tuple[Relation, ...], owners: frozenset[str]
) -> tuple[tuple[Step, ...], frozenset[str]]:
    """The memories with these relations and their owners, and the owners that have no such memory."""
    steps = []
    for memory, verdict in near:
        theirs = candidate.decides_for(memory) & owners
        if verdict.relation in relations and theirs:
            steps.append(Step(memory, theirs, verdict))
            owners = owners - theirs
    return tuple(steps), owners


def _replaced(candidate: CandidateFact, near: Near, fresh: frozenset[str]) -> tuple[Step, ...]:
    steps = []
    for memory, verdict in near:
        # A corrected memory is replaced even for owners that already know the right words.
        owners = candidate.origin.owners if candidate.corrects(memory) else fresh
        theirs = candidate.decides_for(memory) & owners
        if verdict.relation == "contradiction" and theirs:
            steps.append(Step(memory, theirs, verdict))
    return tuple(steps)


def _new_memory(candidate: CandidateFact, owners: frozenset[str], replaced: Sequence[Step]) -> Memory:
    """The memory to insert, later than those it replaces."""
    memory = candidate.memory(owners)
    later = [step.memory.created_at + timedelta(microseconds=1) for step in replaced]
    return replace(memory, created_at=max([memory.created_at, *later]))


def _seen(candidate: CandidateFact, steps: Sequence[Step]) -> list[Step]:
    return [step for step in steps if candidate.sees(step.memory)]


def _close(candidate: CandidateFact, near: Near) -> tuple[Memory, ...]:
    """Up to three similar memories that stay unchanged. The model may correct them."""
    return tuple(m for m, v in near if v.relation == "different" and candidate.sees(m))[:3]


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
