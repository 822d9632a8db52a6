"""What a forgetting takes from jobs that wait."""

from typing import Any

import pytest

from agent.services.erasure.waiting_jobs import WaitingJobs
from agent.turn.jobs import APPLY_UPDATES, STORE_MEMORIES
from memory.erasure.forgotten_data import ForgottenData
from memory.erasure.repetition import words

DATA = ForgottenData(
    "ana", frozenset({"m1", "f1"}), ("Ana's PIN is 4711",), ("my PIN is 4711",), words("ana")
)


def stored(message: str | None, *facts: str) -> dict[str, Any]:
    found = {"message": [], "memory": list(facts)}
    return {"message_id": message, "drafts": [{"content": "Ana skis"}], "found": found}


@pytest.mark.parametrize(
    ("kind", "payload", "stays"),
    [
        (STORE_MEMORIES, stored("m1"), False),
        (STORE_MEMORIES, stored("m2", "f1"), False),
        (STORE_MEMORIES, stored("m2", "f2"), True),
        (APPLY_UPDATES, {"heard": "m1"}, False),
        (APPLY_UPDATES, {"heard": "m2"}, True),
        ("look_back", {"conversation": "dm:ana"}, True),
    ],
)
def test_a_job_that_rests_on_what_was_forgotten_is_dropped(
    kind: str, payload: dict[str, Any], stays: bool, clock: Any
) -> None:
    left = WaitingJobs(clock).without_forgotten(kind, "ana", payload, DATA)
    assert left == (payload if stays else None)
