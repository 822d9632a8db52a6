"""Limit the model calls of consolidation per day, for each person and each place.

Calls count for the owner of a conversation: the person in private, or the place. They are counted in the
database, so the limit covers all processes and restarts. If an owner has no calls left, their jobs wait in
the queue.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.dialects.postgresql import insert

from agent.services.statistics import WaitingForCalls
from memory.process.breaker import NotNow
from memory.sql.engine import Database
from memory.sql.messages.summaries import CONSOLIDATE
from memory.sql.tables import figures, work

log = logging.getLogger("hachi.consolidation")

COUNTED = "consolidation calls "
"""The beginning of a figure's name; the day follows."""


class BudgetSpent(NotNow):
    """The owner has no calls for consolidation left today."""


@dataclass(frozen=True)
class ConsolidationBudget:
    database: Database
    clock: Callable[[], datetime]
    per_day: int
    """The most calls a day; 0: no limit."""

    async def check(self, payer: str) -> None:
        """Raise BudgetSpent if the payer, a person's id or a place's key, has no calls left."""
        if payer in await self._spent(figures.c.user_id == payer):
            raise self._budget_spent(payer)

    async def spend(self, payer: str) -> None:
        """Count one call. Raises BudgetSpent, and counts nothing, if the payer has none left."""
        if not self.per_day:
            return
        counted = (
            insert(figures)
            .values(user_id=payer, name=self._today, value=1)
            .on_conflict_do_update(
                index_elements=["user_id", "name"],
                set_={"value": figures.c.value + 1},
                where=figures.c.value < self.per_day,
            )
            .returning(figures.c.value)
        )
        async with self.database.write() as connection:
            number = await connection.scalar(counted)
            if number is None:
                raise self._budget_spent(payer)
            if number == 1:  # delete the counts of earlier days
                earlier = figures.c.name.startswith(COUNTED), figures.c.name != self._today
                await connection.execute(delete(figures).where(figures.c.user_id == payer, *earlier))
        if number == self.per_day:
            until = f"{self._midnight:%Y-%m-%d %H:%M}"
            log.warning("the consolidation of %s waits from the next call on, until %s UTC", payer, until)

    async def waiting(self) -> WaitingForCalls:
        """Return how many jobs of all owners wait for the next day's calls."""
        if not (spent := await self._spent()):
            return WaitingForCalls()
        rows = await self.database.rows(select(work.c.user_id).where(work.c.kind == CONSOLIDATE))
        jobs = sum(row.user_id in spent for row in rows)
        return WaitingForCalls(jobs, self._midnight if jobs else None)

    async def _spent(self, *whose: ColumnElement[bool]) -> set[str]:
        """Return the owners without calls left today."""
        over = figures.c.name == self._today, figures.c.value >= self.per_day
        query = select(figures.c.user_id).where(*over, *whose)
        return {row.user_id for row in await self.database.rows(query)} if self.per_day else set()

    def _budget_spent(self, payer: str) -> BudgetSpent:
        return BudgetSpent(
            f"{payer} has no calls for consolidation left today (HACHI_CONSOLIDATE_PER_DAY)", self._midnight
        )

    @property
    def _today(self) -> str:
        return f"{COUNTED}{self.clock():%Y-%m-%d}"

    @property
    def _midnight(self) -> datetime:
        return self.clock().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
