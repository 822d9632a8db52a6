"""What a decision on a fact rested on. Its trace keeps it, so that today's code can decide again."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from memory.facts.candidate import CandidateFact, Provenance
from memory.facts.compare import Verdict
from memory.facts.decide import decision_of, refusal, resolve
from memory.facts.fact_rows import lacking_owners, repeats_found, still_valid
from memory.facts.similar import weighed
from memory.records import Decision, Draft, Memory


@dataclass(frozen=True, slots=True)
class Case:
    draft: Draft
    origin: Provenance
    now: datetime
    rulings: Mapping[str, Verdict]
    made: frozenset[str]
    worded_so: Mapping[str, Memory] = field(default_factory=dict)
    """By owner, the memory in the same words."""
    near: tuple[Memory, ...] = ()
    cosine: Mapping[str, float] = field(default_factory=dict)
    aliases: tuple[tuple[str, str], ...] = ()
    ended: Decision | None = None
    """What the rows alone decided: the message was gone, or the fact had ended or was made private."""

    @classmethod
    def of(cls, fact: CandidateFact) -> "Case":
        found = tuple(replace(hit, memory=None) for hit in fact.origin.found)
        origin = replace(fact.origin, found=found)
        known: dict[str, Any] = {"draft": fact.draft, "made": frozenset(fact.made)} | fact.known
        return cls(origin=origin, now=fact.now, rulings=dict(fact.rulings), **known)

    def to_trace(self) -> dict[str, Any]:
        kept: dict[str, Any] = _as_data().dump_python(self, mode="json", exclude_defaults=True)
        return kept

    @classmethod
    def from_trace(cls, data: Any) -> "Case":
        """Raises pydantic.ValidationError for what is none."""
        return _as_data().validate_python(data)

    def decide(self, importance_floor: float) -> Decision:
        """Decide as the writer did, without a database. The id of a new memory is another one."""
        fact = CandidateFact(
            self.draft, self.origin, None, self.now, made=set(self.made), rulings=dict(self.rulings)
        )
        decided = refusal(fact, importance_floor) or self.ended or repeats_found(fact, self.worded_so)
        if decided:
            return decided
        worded_so, _ = still_valid(fact, self.worded_so)
        lacking = lacking_owners(fact, worded_so)
        near = weighed(fact, self.near, self.aliases, self.cosine) if lacking else []
        return decision_of(fact, resolve(fact, worded_so, near), near)


@cache
def _as_data() -> TypeAdapter[Case]:
    return TypeAdapter(Case)
