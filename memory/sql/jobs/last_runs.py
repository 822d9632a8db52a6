"""Store when database-wide jobs last ran, as rows of `figures` without a person."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import bindparam, or_, select
from sqlalchemy.dialects.postgresql import insert

from memory.sql.engine import Database
from memory.sql.tables import figures

CLAIM = timedelta(minutes=10)
"""After this time a job that its process did not finish runs again."""

# Built once, since building them takes longer than running them.
_DUE = or_(
    figures.c.value <= bindparam("before"),
    figures.c.value > bindparam("after"),  # the clock went back
)
_RAN = figures.c.user_id == "", figures.c.name == bindparam("job")
_NOT_DUE = select(figures.c.value).where(*_RAN, ~_DUE)
_NEW = insert(figures).values(user_id="", name=bindparam("job"), value=bindparam("time"))
_SET = _NEW.on_conflict_do_update(index_elements=["user_id", "name"], set_={"value": _NEW.excluded.value})
_CLAIM = _NEW.on_conflict_do_update(
    index_elements=["user_id", "name"], set_={"value": _NEW.excluded.value}, where=_DUE
).returning(figures.c.value)


@dataclass(frozen=True)
class LastRuns:
    database: Database
    clock: Callable[[], datetime]

    @asynccontextmanager
    async def claimed(self, job: str, every: timedelta) -> AsyncIterator[bool]:
        """Yield whether the job is due and no other process runs it. If so, and the block ends without an
        error, store that it ran."""
        yield (due := await self._claim(f"last {job}", every))
        if due:
            await self.database.run(_SET, {"job": f"last {job}", "time": int(self.clock().timestamp())})

    async def _claim(self, job: str, every: timedelta) -> bool:
        now = self.clock()
        before, after = int((now - every).timestamp()), int((now + every).timestamp())
        given = {"job": job, "before": before, "after": after}
        if await self.database.rows(_NOT_DUE, given):
            return False  # the usual case, without taking SQLite's write lock
        time = int((now - every + min(CLAIM, every)).timestamp())
        return bool(await self.database.rows(_CLAIM, given | {"time": time}))
