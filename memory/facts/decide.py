"""Decide what happens to a candidate fact for each of its owners, given their memories (`Case`). Pure.

An owner may have the same words, an equivalent fact, one that the candidate supersedes, or nothing similar.
The decision shows only memories that the audience may read.

If words prove nothing, a model may rule. It may supersede a fact with other numbers and names, but only one
that the same person stated before. It may treat a fact as known only if no value is lost.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Literal

from memory.facts.candidate import CandidateFact, Provenance
from memory.facts.compare import (
    DIFFERENT,
    SAME,
    Relation,
    Verdict,
    coarser,
    differs_in_value,
    missing_value,
    same_words,
)
from memory.facts.refusal import echo_of_memory, echo_of_search, refusal
from memory.process.spans import Traced
from memory.records import Action, Decision, Memory, NewMemory
from memory.text.names import Aliases
from memory.text.ttl import describe

Near = Sequence[tuple[Memory, Verdict]]

_ORDER = ("same", "subsumed", "contradiction", "outdated", "different")
CORRECTED_BEFORE = "said before what it is to correct"

Ruling = Literal["replaces", "same", "ignore"]
"""A model's ruling: the new fact supersedes the old one, says the same, or adds nothing to it."""

RULINGS: Mapping[Ruling, Verdict] = MappingProxyType(
    {
        "replaces": Verdict("contradiction", "a model judged that it takes its place"),
        "same": Verdict("same", "a model judged that both say the same"),
        "ignore": Verdict("subsumed", "a model judged that it was said already"),
    }
)


@dataclass(frozen=True, slots=True)
class Step:
    """A memory, and the owners for whom it is superseded or already covers the candidate."""

    memory: Memory
    owners: frozenset[str]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Resolution:
    memory: Memory
    """The memory that states the fact after the decision, new or already stored."""
    new: bool
    fresh: frozenset[str]
    """Owners that get this memory now."""
    covered: tuple[Step, ...]
    """Memories that already state the candidate, with their owners."""
    outdated: tuple[Step, ...]
    """Newer memories that already supersede the candidate, with their owners."""
    replaced: tuple[Step, ...]
    """Memories that the candidate supersedes."""


def deciding_owners(candidate: CandidateFact, verbatim: Collection[str]) -> frozenset[str]:
    """Return the owners without a memory in the same words, for whom similar memories decide."""
    owners = candidate.origin.owners
    return owners if candidate.proposed.replaces else owners.difference(verbatim)


def resolve(candidate: CandidateFact, verbatim: Mapping[str, Memory], near: Near) -> Resolution:
    """Decide for every owner. `verbatim` maps owners to their memory in the same words. `near` lists similar
    memories, those with the decisive relations first."""
    readable = next((memory for memory in verbatim.values() if candidate.sees(memory)), None)
    covered, lacking = _shares(candidate, near, ("same", "subsumed"), candidate.origin.owners - set(verbatim))
    outdated, fresh = _shares(candidate, near, ("outdated",), lacking)
    replaced = _replaced(candidate, near, fresh)
    if readable is not None:
        return Resolution(readable, False, fresh, covered, (), replaced)
    if lacking:
        memory = _new_memory(candidate, lacking, replaced)
        return Resolution(memory, True, fresh, covered, outdated, replaced)
    return Resolution(_visible(candidate, covered)[0].memory, False, fresh, covered, (), replaced)


def resolved_decision(candidate: CandidateFact, resolution: Resolution, near: Near) -> Decision:
    """Return the decision as the audience may see it."""
    memory = resolution.memory
    covered, replaced = _visible(candidate, resolution.covered), _visible(candidate, resolution.replaced)
    readable = not resolution.new or candidate.origin.audience.may_read(resolution.fresh)
    if readable and replaced:
        reason, old = replaced[0].verdict.reason, replaced[0].memory
        return candidate.decision("replace", memory, reason, target=old, close=_close(candidate, near))
    if resolution.new and readable:
        return candidate.decision("add", memory, "new", close=_close(candidate, near))
    if not resolution.new and memory not in [step.memory for step in covered]:
        return candidate.decision("ignore", memory, "known word for word", target=memory)
    first = (covered or _visible(candidate, resolution.outdated))[0]
    action: Action = "merge" if first.verdict.relation == "same" else "ignore"
    return candidate.decision(action, first.memory, first.verdict.reason, target=first.memory)


def _shares(
    candidate: CandidateFact, near: Near, relations: tuple[Relation, ...], owners: frozenset[str]
) -> tuple[tuple[Step, ...], frozenset[str]]:
    """Return the memories with these relations, with their owners, and the owners without such a memory."""
    steps = []
    for memory, verdict in near:
        deciding = candidate.decides_for(memory) & owners
        if verdict.relation in relations and deciding:
            steps.append(Step(memory, deciding, verdict))
            owners = owners - deciding
    return tuple(steps), owners


def _replaced(candidate: CandidateFact, near: Near, fresh: frozenset[str]) -> tuple[Step, ...]:
    steps = []
    for memory, verdict in near:
        # A corrected memory is superseded even for owners that already have the right words.
        owners = candidate.origin.owners if candidate.corrects(memory) else fresh
        deciding = candidate.decides_for(memory) & owners
        if verdict.relation == "contradiction" and deciding:
            steps.append(Step(memory, deciding, verdict))
    return tuple(steps)


def _new_memory(candidate: CandidateFact, owners: frozenset[str], replaced: Sequence[Step]) -> Memory:
    """Return the memory to insert, with a later time than those that it supersedes."""
    memory = candidate.memory(owners)
    later = [step.memory.created_at + timedelta(microseconds=1) for step in replaced]
    return replace(memory, created_at=max([memory.created_at, *later]))


def _visible(candidate: CandidateFact, steps: Sequence[Step]) -> list[Step]:
    return [step for step in steps if candidate.sees(step.memory)]


def _close(candidate: CandidateFact, near: Near) -> tuple[Memory, ...]:
    """Return up to three similar memories that stay unchanged, which the model may correct."""
    return tuple(m for m, v in near if v.relation == "different" and candidate.sees(m))[:3]


def as_candidate(memory: Memory, origin: Provenance, now: datetime) -> CandidateFact:
    """Return a stored fact as a candidate that `origin.user` states."""
    ttl = describe(memory.expires_at - memory.created_at) if memory.expires_at else None
    restored = NewMemory(memory.content, memory.subjects, ttl, memory.type, memory.importance)
    provenance = Provenance(
        origin.user,
        memory.created_at,
        origin.place,
        message_id=memory.message_id,
        live=True,
        everybody=origin.everybody,
    )
    return CandidateFact(restored, provenance, None, now)


def checked(candidate: CandidateFact, old: Memory, verdict: Verdict, aliases: Aliases) -> Verdict:
    """Return the verdict, or "different" if it would lose a value, or let an older fact supersede a newer one
    or a temporary fact a permanent one. Of two facts that say the same in other words, the newer one stays,
    or the one that says more."""
    if verdict.relation in ("same", "subsumed"):
        new, stored = map(aliases.canonical, (candidate.proposed.content, old.content))
        if (missing := missing_value(new, stored)) is None:
            return verdict
        if differs_in_value(new, stored):
            return Verdict("different", f"a model judged it known, but {missing!r} is not")
        alike = verdict.relation == "same" and not differs_in_value(stored, new)
        if not alike and not coarser(new, stored):
            return Verdict("different", f"a model judged it known, but {missing!r} is not")
        stays = alike and candidate.newer_than(old) and old.expires_at is None
        verdict = Verdict("contradiction" if stays else "outdated", f"{verdict.reason}, in other words")
    if verdict.relation != "contradiction":
        return verdict
    if not candidate.newer_than(old):
        return Verdict("different", "was not said later")
    if candidate.expires_at is not None and old.expires_at is None:
        return Verdict("different", "holds for a time only")
    return verdict


def ruled_step(
    candidate: CandidateFact, new: Memory, old: Memory, ruling: Ruling, aliases: Aliases
) -> Step | None:
    """Return which of two stored facts a ruling supersedes, with the owners; None if it changes nothing."""
    verdict = checked(candidate, old, RULINGS[ruling], aliases)
    outdated = old if verdict.relation == "contradiction" else new
    owners = candidate.decides_for(old) & candidate.decides_for(new) & candidate.origin.owners
    if verdict.relation == "different" or new.id == old.id or not owners:
        return None
    return Step(outdated, owners, verdict)


def ruled_decision(candidate: CandidateFact, new: Memory, old: Memory, step: Step) -> Decision:
    """Return the decision that applies a ruling on two stored facts."""
    if step.memory is old:
        return candidate.decision("replace", new, step.verdict.reason, target=old)
    action: Action = "merge" if step.verdict.relation == "same" else "ignore"
    return candidate.decision(action, old, step.verdict.reason, target=old)


def with_verdicts(
    candidate: CandidateFact,
    memories: Sequence[Memory],
    aliases: Sequence[tuple[str, str]],
    cosine: Mapping[str, float],
) -> Near:
    """Return the memories with their verdicts, ordered by relation, then by similarity."""
    names = Aliases(tuple(aliases))
    pairs = [(memory, _verdict(candidate, memory, names)) for memory in memories]
    return sorted(pairs, key=lambda pair: (_ORDER.index(pair[1].relation), -cosine.get(pair[0].id, 0.0)))


def _verdict(candidate: CandidateFact, old: Memory, aliases: Aliases) -> Verdict:
    if candidate.corrects(old):
        return candidate.correction
    if same_words(aliases.canonical(old.content), aliases.canonical(candidate.proposed.content)):
        return SAME
    if not candidate.sees(old):
        return DIFFERENT
    if old.id == candidate.proposed.replaces and stated_before(candidate, old):
        return Verdict("outdated", CORRECTED_BEFORE)
    return checked(candidate, old, candidate.rulings.get(old.id, DIFFERENT), aliases)


def stated_before(candidate: CandidateFact, memory: Memory) -> bool:
    return candidate.origin.said_at < memory.created_at and not candidate.newer_than(memory)


@dataclass(frozen=True, slots=True)
class Case(Traced):
    """The inputs of a decision. The trace has them, so that a replay can decide again."""

    draft: NewMemory
    origin: Provenance
    now: datetime
    rulings: Mapping[str, Verdict]
    made: frozenset[str]
    worded_so: Mapping[str, Memory] = field(default_factory=dict)
    """The memory in the same words, by owner."""
    near: tuple[Memory, ...] = ()
    cosine: Mapping[str, float] = field(default_factory=dict)
    recalled: frozenset[str] = frozenset()
    """The ids of near memories that the fact repeats in other words, though its message does not state it."""
    aliases: tuple[tuple[str, str], ...] = ()
    ended: Decision | None = None
    """A decision from the rows alone: the message was erased, or the fact had expired or was made private."""

    @classmethod
    def of(cls, fact: CandidateFact, **read: Any) -> "Case":
        """Return the case of a fact. `read` contains the other fields."""
        hits = tuple(replace(hit, memory=None) for hit in fact.origin.found)
        origin = replace(fact.origin, found=hits)
        return cls(fact.proposed, origin, fact.now, dict(fact.rulings), frozenset(fact.made), **read)

    def decide(self, importance_floor: float) -> tuple[Decision, Resolution | None]:
        """Return the decision, and its effect on the rows, if any."""
        made, rulings = set(self.made), dict(self.rulings)
        fact = CandidateFact(self.draft, self.origin, None, self.now, made=made, rulings=rulings)
        decided = refusal(fact, importance_floor) or self.ended or echo_of_search(fact, self.worded_so)
        decided = decided or echo_of_memory(fact, [one for one in self.near if one.id in self.recalled])
        if decided:
            return decided, None
        verbatim = fact.still_valid(self.worded_so)
        lacking = deciding_owners(fact, verbatim)
        competing = [memory for memory in self.near if not memory.owners.isdisjoint(lacking)]
        near = with_verdicts(fact, competing, self.aliases, self.cosine)
        resolution = resolve(fact, verbatim, near)
        return resolved_decision(fact, resolution, near), resolution
