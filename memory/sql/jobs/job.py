"""A job as it is stored: its kinds, how often it is tried, and its records."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

CLAIM = timedelta(seconds=30)
"""How long a claimed job belongs to the process that claimed it, unless that renews the claim."""
MAX_ATTEMPTS = 8
"""After this many failures the job stays in the table, and `hachi doctor` reports it."""
SUSPECT = 2
"""From this many crashes on, a job runs beside no other such job, and waits longer after each."""

REMIND = "remind"
"""The kind of job that announces a due task: see `memory.people.due_tasks`."""
ANSWER = "answer"
"""The kind of job that answers a message of a chat platform: see `memory.sql.jobs.deliveries`."""
POSTS = "posts"
"""The kind of job that makes the posts of a reply on a chat platform follow the stored one."""
CHECK_IN = "check_in"
"""The kind of job that asks a person how something went: see `memory.people.check_ins`."""
CONFIRM = "confirm"
"""The kind of job that waits until a person agrees to a call; it becomes a `CALL`, or times out."""
CALL = "call"
"""The kind of job that runs a call to which its person has agreed."""
CLAIMED_BY_ID = frozenset({REMIND, ANSWER, POSTS, CHECK_IN, CONFIRM, CALL})
"""Kinds that only some processes can handle, whose workers do not claim them."""


class ClaimLost(Exception):
    """The job is another claim's by now: what was begun under this one is not written."""


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    kind: str
    user_id: str
    payload: dict[str, Any]
    attempts: int
    """Which attempt this is: one more than the failures so far."""
    about: str | None = None
    crashes: int = 0
    """How many processes ended while they ran it."""
    created_at: datetime | None = field(default=None, compare=False)
    claim: str | None = field(default=None, compare=False)
    """Under which it was claimed, different each time; None if it is in no queue."""


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A job as `hachi jobs list` shows it, without what it is about."""

    id: str
    kind: str
    user_id: str
    state: Literal["waiting", "running", "given up"]
    failures: int
    crashes: int
    due_at: datetime
    created_at: datetime
    last_error: str | None


def to_job(row: Any) -> Job:
    return Job(
        row.id,
        row.kind,
        row.user_id,
        row.payload,
        row.attempts + 1,
        row.about,
        row.crashes,
        row.created_at,
        row.claimed_by,
    )
