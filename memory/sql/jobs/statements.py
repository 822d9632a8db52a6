"""The statements of the queue, built once: building them takes longer than running them."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    and_,
    bindparam,
    case,
    exists,
    func,
    not_,
    or_,
    select,
    union,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.dml import ReturningInsert

from memory.sql.jobs.job import CLAIM, CLAIMED_BY_ID, MAX_ATTEMPTS, SUSPECT
from memory.sql.tables import Utc, work
from memory.sql.tables.columns import database_time


def claimable(now: Any) -> ColumnElement[bool]:
    """Match jobs that are due, not claimed and not given up."""
    return and_(work.c.due_at <= now, work.c.claimed_by.is_(None), work.c.attempts < MAX_ATTEMPTS)


CLAIM_ENDS = database_time(CLAIM.total_seconds())
"""When a claim made now ends, by the database's clock, because the clocks of processes may differ."""
_other = work.alias("other")
BEFORE = exists().where(
    _other.c.kind == work.c.kind,
    _other.c.about == work.c.about,
    _other.c.seq != work.c.seq,
    or_(
        _other.c.claimed_by.is_not(None),
        and_(_other.c.seq < work.c.seq, _other.c.attempts < MAX_ATTEMPTS),
    ),
)
"""True for jobs that must wait for another one of the same kind and `about`, which is claimed or older."""

When = ReturningInsert[Any]
"""An upsert of a pending job, made by `when`."""


def when(due: ColumnElement[datetime] | None = None) -> When:
    """Build the statement of `JobQueue.expect` for jobs that are `due` at this expression. None means now,
    and keeps the payload of a pending job.

    It inserts the job under the id of the pending one, whose conflict becomes an update. It returns no row if
    the pending job was claimed meanwhile.
    """
    names = ("kind", "user_id", "payload", "about")
    new = {name: bindparam(f"new_{name}", type_=work.c[name].type) for name in names}
    now = bindparam("now", type_=Utc())
    waits = and_(work.c.claimed_by.is_(None), work.c.attempts + work.c.crashes == 0)
    same = select(work.c.id).where(work.c.kind == new["kind"], work.c.about == new["about"], waits)
    id = func.coalesce(same.order_by(work.c.seq).limit(1).scalar_subquery(), bindparam("new_id"))
    row = {"id": id, **new, "created_at": now, "due_at": now if due is None else due}
    added = insert(work).values(**row)
    moved: dict[str, ColumnElement[Any]] = {
        "due_at": case((work.c.due_at <= now, work.c.due_at), else_=added.excluded.due_at)
    }
    if due is not None:
        moved["payload"] = added.excluded.payload
    expected = added.on_conflict_do_update(index_elements=["id"], set_=moved, where=waits)
    return expected.returning(work.c.due_at)


ADD = insert(work)
NOW_DUE = when()

_DUE = and_(claimable(bindparam("now", type_=Utc())), work.c.kind.not_in(CLAIMED_BY_ID))
ANY_DUE = select(work.c.seq).where(_DUE).limit(1)
LOOKED_AT = 500
"""How many of the oldest and of the newest due jobs a claim looks at. So its cost does not grow with their
number, and a person with very many jobs does not block others."""
_oldest, _newest = (
    select(select(work.c.seq).where(_DUE).order_by(*order).limit(LOOKED_AT).subquery().c.seq)
    for order in ((work.c.due_at, work.c.seq), (work.c.due_at.desc(), work.c.seq.desc()))
)
_NEAR = work.c.seq.in_(union(_oldest, _newest))
_IS_LAST, _IS_SUSPECT = work.c.kind == bindparam("last"), work.c.crashes >= SUSPECT
_suspect = select(func.min(work.c.seq)).where(_NEAR, _IS_SUSPECT).scalar_subquery()
_nth = func.row_number().over(partition_by=(work.c.user_id, _IS_LAST), order_by=work.c.seq)
_due = (
    select(work.c.seq)
    .where(
        _NEAR, or_(not_(_IS_SUSPECT), and_(bindparam("suspects", type_=Boolean()), work.c.seq == _suspect))
    )
    .order_by(_IS_LAST, _IS_SUSPECT, _nth, work.c.seq)
    .limit(bindparam("most"))
)
_free = select(work.c.seq).where(work.c.seq.in_(_due), _DUE).with_for_update(skip_locked=True).cte("free")
CLAIM_DUE = (
    update(work)
    .where(work.c.seq.in_(select(_free.c.seq)))
    .values(due_at=CLAIM_ENDS, claimed_by=bindparam("claim"))
    .returning(work)
)
_RUNS = and_(work.c.claimed_by.is_not(None), work.c.due_at > database_time(0))
_STATE = case((work.c.attempts >= MAX_ATTEMPTS, "given up"), (_RUNS, "running"), else_="waiting")
LISTED = select(
    *(work.c.id, work.c.kind, work.c.user_id, _STATE, work.c.attempts, work.c.crashes),
    *(work.c.due_at, work.c.created_at, work.c.last_error),
)
"""The fields of `ListedJob`, in order."""
CLAIM_ENDED = select(work).where(work.c.claimed_by.is_not(None), work.c.due_at <= database_time(0))
ADD_CLAIMED = insert(work).values(due_at=CLAIM_ENDS)
HOLDS = (
    select(work.c.seq)
    .where(work.c.id == bindparam("job"), work.c.claimed_by == bindparam("claim"))
    .with_for_update(read=True)
)
"""Finds a job that still has this claim, and locks it until the transaction ends."""
