"""Log one line of JSON for each person and run, for an operator's tools.

A run is everything inside the outermost `decision_run`: a background job, an import, or one call of
`FactWriter.remember`. The logger `hachi.decisions` does not propagate: without a handler of its own, no fact
appears in a program's log.
"""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from memory.facts.candidate import CandidateFact, Provenance
from memory.records import Decision

log = logging.getLogger("hachi.decisions")
log.propagate = False

Facts = Literal["on", "redacted", "off"]
"""How a line shows facts, and reasons, which may quote them: in full, as a placeholder, or not at all."""
REDACTED = "[redacted]"


@dataclass(slots=True)
class _PersonRun:
    """The messages of one person in a run, and the decisions on them."""

    messages: set[str] = field(default_factory=set)
    candidates: int = 0
    decisions: list[tuple[Decision, str | None]] = field(default_factory=list)
    """Each decision with the id of the message that stated the fact."""


_run: ContextVar[dict[str, _PersonRun] | None] = ContextVar("decision_run", default=None)


@contextmanager
def decision_run(facts: Facts = "on") -> Iterator[None]:
    """Log the decisions of the block as a line per person, even if it fails. A nested run is part of the
    outer."""
    if _run.get() is not None:
        yield
        return
    people: dict[str, _PersonRun] = {}
    token = _run.set(people)
    try:
        yield
    finally:
        _run.reset(token)
        for user, part in people.items():
            log.info(without_facts(json.dumps(_line(user, part), ensure_ascii=False), facts))


def count_candidates(facts: Sequence[CandidateFact]) -> None:
    """Count the proposed facts of the current run."""
    for fact in facts:
        part = _person_run(fact.origin)
        part.messages.add(fact.origin.said)
        part.candidates += 1


def add_decision(origin: Provenance, decision: Decision) -> None:
    """Add a stored decision to the current run."""
    _person_run(origin).decisions.append((decision, origin.message_id))


def _person_run(origin: Provenance) -> _PersonRun:
    run = _run.get()
    assert run is not None, "decisions are made inside a decision_run"
    return run.setdefault(origin.user, _PersonRun())


def _line(user: str, part: _PersonRun) -> dict[str, object]:
    return {
        "event": "memory_decision",
        "user_id": user,
        "input_message_length": sum(map(len, part.messages)),
        "extracted_count": part.candidates,
        "decisions": [
            {"fact": d.content, "action": d.action}
            | ({"id": d.id} if d.id else {})
            | ({"target_id": d.target_id} if d.target_id else {})
            | ({"message_id": message_id} if message_id else {})
            | {"reason": d.reason}
            for d, message_id in part.decisions
        ],
    }


def without_facts(line: str, facts: Facts) -> str:
    """Return the line with facts in full, as placeholders, or not at all."""
    if facts == "on":
        return line
    event = json.loads(line)
    for decision in event["decisions"]:
        for name in ("fact", "reason"):
            decision.pop(name, None)
            if facts == "redacted":
                decision[name] = REDACTED
    return json.dumps(event, ensure_ascii=False)
