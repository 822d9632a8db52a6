"""What follows from a statement for each of its owners, given what they have already. Pure: nothing is read
or written here.

It is decided an owner at a time. One may have the very words; or something that says as much; or something
newer that ended it; or something that it ends or refines; or nothing of the kind. Whatever becomes of it, the
people present hear only of what they may read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory.case import Case
from memory.compare import Relation, Verdict
from memory.records import Action, Decision, Memory

Near = Sequence[tuple[Memory, Verdict]]


@dataclass(frozen=True, slots=True)
class Step:
    """For these owners a memory gives way, or stands for the statement."""

    memory: Memory
    owners: frozenset[str]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Outcome:
    memory: Memory
    """What says it from now on: new, or known already."""
    new: bool
    fresh: frozenset[str]
    """Who has it from now on and had not before."""
    covered: tuple[Step, ...]
    """Who has something that says as much."""
    outdated: tuple[Step, ...]
    """Who has something newer that ended it: it was said before what is known now."""
    replaced: tuple[Step, ...]
    """What gives way to it."""


def outcome_of(case: Case, held: Mapping[str, Memory], near: Near) -> Outcome:
    """`held` are the owners who have the very words; `near` is what resembles it, what decides first."""
    here = next((memory for memory in held.values() if case.sees(memory)), None)
    covered, lacking = _shares(near, ("same", "coarser"), case.origin.owners - set(held))
    outdated, fresh = _shares(near, ("stale",), lacking)
    replaced = _replaced(case, near, fresh)
    if here is not None:
        return Outcome(here, False, fresh, covered, (), replaced)
    if lacking:
        return Outcome(_made(case, lacking, replaced), True, fresh, covered, outdated, replaced)
    known = _seen(case, covered)[0].memory
    return Outcome(known, False, fresh, covered, (), replaced)


def decision_of(case: Case, outcome: Outcome, near: Near) -> Decision:
    """What the people present are told."""
    memory, covered = outcome.memory, _seen(case, outcome.covered)
    replaced = _seen(case, outcome.replaced)
    shown = not outcome.new or case.origin.audience.may_read(outcome.fresh)
    if shown and replaced:
        first = replaced[0]
        return case.decision(
            "replace", memory, first.verdict.reason, target=first.memory, close=_close(case, near)
        )
    if outcome.new and shown:
        return case.decision("add", memory, "new", close=_close(case, near))
    if not outcome.new and memory not in [step.memory for step in covered]:
        return case.decision("ignore", memory, "known word for word", target=memory)
    first = (covered or _seen(case, outcome.outdated))[0]
    action: Action = "merge" if first.verdict.relation == "same" else "ignore"
    return case.decision(action, first.memory, first.verdict.reason, target=first.memory)


def _shares(
    near: Near, relations: tuple[Relation, ...], owners: frozenset[str]
) -> tuple[tuple[Step, ...], frozenset[str]]:
    """Which of the owners have a memory of these relations; and who is left."""
    steps = []
    for memory, verdict in near:
        theirs = memory.owners & owners
        if verdict.relation in relations and theirs:
            steps.append(Step(memory, theirs, verdict))
            owners = owners - theirs  # a new set: the caller keeps its own
    return tuple(steps), owners


def _replaced(case: Case, near: Near, fresh: frozenset[str]) -> tuple[Step, ...]:
    steps = []
    for memory, verdict in near:
        # What is corrected on purpose goes, even for those who have the right words already.
        owners = case.origin.owners if case.corrects(memory) else fresh
        theirs = memory.owners & owners
        if verdict.relation in ("contradiction", "richer") and theirs:
            steps.append(Step(memory, theirs, verdict))
    return tuple(steps)


def _made(case: Case, owners: frozenset[str], replaced: Sequence[Step]) -> Memory:
    """A new memory. The more detailed one inherits what the other had earned, as far as it may show."""
    memory = case.memory(owners)
    refined = [step.memory for step in _seen(case, replaced) if step.verdict.relation == "richer"]
    if not refined:
        return memory
    return replace(
        memory,
        subjects=tuple(dict.fromkeys([*memory.subjects, *(tag for old in refined for tag in old.subjects)])),
        importance=max(memory.importance, *(old.importance for old in refined)),
        expires_at=_latest([memory.expires_at, *(old.expires_at for old in refined)]),
    )


def _latest(times: Sequence[datetime | None]) -> datetime | None:
    return None if None in times else max(time for time in times if time is not None)


def _seen(case: Case, steps: Sequence[Step]) -> list[Step]:
    return [step for step in steps if case.sees(step.memory)]


def _close(case: Case, near: Near) -> tuple[Memory, ...]:
    """What resembles it and was left as it is, for the model to correct."""
    return tuple(m for m, v in near if v.relation in ("doubtful", "different") and case.sees(m))[:3]
