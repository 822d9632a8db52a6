"""Drops waiting jobs that rest on what was forgotten or erased."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent.turn.jobs import APPLY_UPDATES, STORE_MEMORIES
from memory.erasure.forgotten_data import ForgottenData

Payload = dict[str, Any]


@dataclass(frozen=True)
class WaitingJobs:
    clock: Callable[[], datetime]

    def without_forgotten(
        self, kind: str, user: str, payload: Payload, data: ForgottenData
    ) -> Payload | None:
        """Return the payload; None if what the job rests on was forgotten."""
        return None if _rests_on(kind, payload, data.ids) else payload

    def without_recalled(self, kind: str, user: str, payload: Payload, ids: Collection[str]) -> Payload:
        """Return the payload of somebody else's job without what a model wrote, if it rests on one of these
        ids."""
        return payload | {"drafts": []} if _rests_on(kind, payload, ids) else payload


def _rests_on(kind: str, payload: Payload, ids: Collection[str]) -> bool:
    if kind == STORE_MEMORIES:
        sources = {payload["message_id"], *payload["found"]["memory"], *payload["found"]["message"]}
        return not sources.isdisjoint(ids)
    return kind == APPLY_UPDATES and payload["heard"] in ids
