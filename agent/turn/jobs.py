"""Builds the jobs that follow a turn, in the form that the queue stores."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, NamedTuple

from agent.types import TurnRequest
from memory.audience import Place
from memory.facts.candidate import Provenance
from memory.records import Draft, Hit
from memory.sql.jobs import Job
from memory.sql.summaries import LOOK_BACK, consolidation_subject, owner_of

APPLY_UPDATES = "apply_updates"
"""The kind of job that stores the facts and tasks that a consolidation extracted."""
STORE_MEMORIES = "store_memories"
"""The kind of job that stores the memories[] of an answer."""


class QueuedJob(NamedTuple):
    """A job that is to be queued."""

    kind: str
    payload: dict[str, Any]
    subject: str | None = None
    """What it is about: of the jobs of one subject, one runs for all."""


def store_memories_payload(
    drafts: Sequence[Draft],
    incoming: TurnRequest,
    message_id: str | None,
    recalled: Sequence[Hit],
    shown: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the payload: an answer's memories[] and their origin."""
    return {
        "drafts": [asdict(draft) for draft in drafts],
        "place": list(incoming.place.path),
        "said_at": incoming.sent_at.isoformat(),
        "said": incoming.text,
        "message_id": message_id,
        "recalled": [{"id": hit.id, "kind": hit.kind, "content": hit.content} for hit in recalled],
        "shown": sorted(shown),
    }


def read_store_memories(job: Job) -> tuple[list[Draft], Provenance]:
    """Parse the payload of `store_memories_payload`."""
    payload = job.payload
    said_at = datetime.fromisoformat(payload["said_at"])
    recalled = (
        Hit(hit["id"], hit["kind"], hit["content"], score=0.0, created_at=said_at)
        for hit in payload["recalled"]
    )
    origin = Provenance(
        user=job.user_id,
        said_at=said_at,
        place=Place(tuple(payload["place"])),
        message_id=payload["message_id"],
        said=payload["said"],
        live=True,
        recalled=tuple(recalled),
        shown=frozenset(payload.get("shown", ())),
    )
    drafts = [Draft(**draft | {"subjects": tuple(draft["subjects"])}) for draft in payload["drafts"]]
    return drafts, origin


def task_payload(
    task: Mapping[str, Any], incoming: TurnRequest, message_id: str | None, now: datetime
) -> dict[str, Any]:
    """Return the payload of an `APPLY_UPDATES` job with one task: its id, description, status and due."""
    origin = {"place": list(incoming.place.path), "heard": message_id, "found_at": now.isoformat()}
    return {**origin, "facts": [], "said": {}, "tasks": [dict(task)]}


def consolidation(incoming: TurnRequest) -> QueuedJob:
    """Return the job that consolidates the conversation."""
    place = list(incoming.place.path)
    payload = {"conversation": incoming.conversation_id, "place": place, "may_wait": True}
    owner = owner_of(str(incoming.user), incoming.place)
    return QueuedJob(LOOK_BACK, payload, consolidation_subject(incoming.conversation_id, owner))
