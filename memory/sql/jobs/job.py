"""Records of stored jobs, the kinds of jobs, and the limits of attempts."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

CLAIM = timedelta(seconds=30)
"""How long a claim lasts, unless the process renews it."""
MAX_ATTEMPTS = 8
"""After this many failures the job stays in the table, and `hachi doctor` reports it."""
SUSPECT = 2
"""From this many crashes on, a job runs alone among such jobs, and waits longer after each crash."""

REMIND = "remind"
"""The kind of job that announces a due task: see `memory.people.due_tasks`."""
ANSWER = "answer"
"""The kind of job that answers a message of a chat platform: see `memory.sql.jobs.deliveries`."""
POSTS = "posts"
"""The kind of job that updates or deletes the posts of a reply on a chat platform."""
CHECK_IN = "check_in"
"""The kind of job that asks a person how something went: see `memory.people.check_ins`."""
CONFIRM = "confirm"
"""The kind of job that waits until a person confirms a call. It becomes a `CALL`, or times out."""
CALL = "call"
"""The kind of job that runs a call which its person has confirmed."""
CLAIMED_BY_ID = frozenset({REMIND, ANSWER, POSTS, CHECK_IN, CONFIRM, CALL})
"""Kinds that only some processes can handle. Workers do not claim them."""


class StaleClaim(Exception):
    """Another process has claimed the job; this process must not write its results."""


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
    """How many processes died while they ran it."""
    created_at: datetime | None = field(default=None, compare=False)
    claim: str | None = field(default=None, compare=False)
    """The token of the claim, different each time; None if the job is in no queue."""


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A job as `hachi jobs list` shows it, without its payload and subject."""

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
    about = row.id, row.kind, row.user_id, row.payload
    return Job(*about, row.attempts + 1, row.about, row.crashes, row.created_at, row.claimed_by)
