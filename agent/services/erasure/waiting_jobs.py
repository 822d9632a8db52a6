"""Cleans the payloads of waiting jobs of what was forgotten or erased."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from agent.turn.jobs import APPLY_UPDATES, STORE_MEMORIES, read_store_memories
from memory.erasure.forgotten_data import ForgottenData
from memory.erasure.repeats import repeated_by_task
from memory.erasure.repetition import FactWords
from memory.facts.candidate import CandidateFact
from memory.facts.echoes import echoed
from memory.sql.jobs import Job

Payload = dict[str, Any]


@dataclass(frozen=True)
class WaitingJobs:
    clock: Callable[[], datetime]

    def without_forgotten(
        self, kind: str, user: str, payload: Payload, data: ForgottenData
    ) -> Payload | None:
        """Return the payload without the forgotten data; None if nothing is left to do. Somebody else's job
        loses only what it recalled: what they say stays theirs."""
        if user == data.user:
            return _without_forgotten(kind, payload, data)
        return self.without_recalled(
            kind, user, payload, {hit["id"] for hit in payload.get("recalled", ()) if _shows(data, hit)}
        )

    def without_recalled(self, kind: str, user: str, payload: Payload, ids: Collection[str]) -> Payload:
        """Return the payload of somebody else's job without the hits of these ids, and without the memories
        that only repeat such a hit."""
        if not any(hit["id"] in ids for hit in payload.get("recalled", ())):
            return payload
        drafts, origin = read_store_memories(Job("", kind, user, payload, 0))
        lost = replace(origin, recalled=tuple(hit for hit in origin.recalled if hit.id in ids))
        echoes = [bool(echoed(CandidateFact(draft, lost, None, self.clock()))) for draft in drafts]
        kept = [draft for draft, echo in zip(payload["drafts"], echoes, strict=True) if not echo]
        recalled = [hit for hit in payload["recalled"] if hit["id"] not in ids]
        return payload | {"drafts": kept, "recalled": recalled}


def _without_forgotten(kind: str, payload: Payload, data: ForgottenData) -> Payload | None:
    facts = data.facts

    def states(content: str) -> bool:
        return any(fact.same_as(FactWords.of(content, data.teller)) for fact in facts)

    if kind == STORE_MEMORIES:
        if payload["message_id"] in data.ids:
            return None
        return payload | {
            "drafts": [draft for draft in payload["drafts"] if not states(draft["content"])],
            "recalled": [hit for hit in payload["recalled"] if not _shows(data, hit)],
        }
    if kind == APPLY_UPDATES:
        kept = [
            fact
            for fact in payload["facts"]
            if data.ids.isdisjoint((fact["message_id"], fact.get("kept"), fact["draft"]["replaces"]))
            and not states(fact["draft"]["content"])
        ]
        said = {id: text for id, text in payload["said"].items() if id not in data.ids}
        tasks = [
            task
            for task in payload["tasks"]
            if not repeated_by_task(task["description"], data.contents, data.teller)
        ]
        left = kept or tasks or payload.get("rulings")
        return payload | {"facts": kept, "said": said, "tasks": tasks} if left else None
    return payload


def _shows(data: ForgottenData, hit: dict[str, Any]) -> bool:
    return hit["id"] in data.ids or data.shown_by(hit["content"])
