"""How many model calls consolidation may make in an hour and in a day, for each person and each place.

The owner of a conversation pays: the person in private, or the place. The calls are counted in the database,
so the limits hold for all processes together and over restarts. The jobs of an owner who has none left wait
in the queue.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert

from agent.services.statistics import WaitingForCalls
from memory.process.breaker import NotNow
from memory.sql.engine import Database
from memory.sql.messages.summaries import LOOK_BACK
from memory.sql.tables import figures, work

log = logging.getLogger("hachi.upkeep")

COUNTED = "upkeep calls "
"""Begins the name of a figure; the hour or day follows."""


class BudgetSpent(NotNow):
    """The owner has no calls left in this hour or day."""


class _Period(NamedTuple):
    name: str
    most: int
    until: datetime


@dataclass(frozen=True)
class UpkeepBudget:
    database: Database
    clock: Callable[[], datetime]
    per_hour: int
    """0: any number."""
    per_day: int
    """0: any number."""

    async def check(self, payer: str) -> None:
        """Raise BudgetSpent if the payer, a person's id or a place's key, has no calls left."""
        if until := (await self._spent(payer)).get(payer):
            raise BudgetSpent(f"{payer} has no upkeep calls left", until)

    async def spend(self, payer: str) -> None:
        """Count one call. Raises BudgetSpent, and counts nothing, if the payer has none left."""
        if not (periods := list(self._periods())):
            return
        new = insert(figures)
        over = figures.c.user_id == payer, figures.c.name.startswith(COUNTED)
        async with self.database.write() as connection:
            for period in periods:
                counted = new.values(user_id=payer, name=period.name, value=1).on_conflict_do_update(
                    index_elements=["user_id", "name"],
                    set_={"value": figures.c.value + 1},
                    where=figures.c.value < period.most,
                )
                number = (await connection.execute(counted.returning(figures.c.value))).scalar()
                if number is None:
                    raise BudgetSpent(f"{payer} has no upkeep calls left", period.until)
                if number == period.most:
                    until = f"{period.until:%Y-%m-%d %H:%M}"
                    log.warning("the upkeep of %s waits from the next call on, until %s UTC", payer, until)
            names = [period.name for period in periods]
            await connection.execute(delete(figures).where(*over, figures.c.name.not_in(names)))

    async def waiting(self) -> WaitingForCalls:
        """Return how much waits for calls, of everybody."""
        if not (spent := await self._spent()):
            return WaitingForCalls()
        rows = await self.database.rows(select(work.c.user_id).where(work.c.kind == LOOK_BACK))
        waits = [spent[row.user_id] for row in rows if row.user_id in spent]
        return WaitingForCalls(len(waits), max(waits, default=None))

    async def _spent(self, payer: str | None = None) -> dict[str, datetime]:
        """Return those who have no calls left, or this one, each with the time until which it is so."""
        periods = {period.name: period for period in self._periods()}
        query = select(figures).where(figures.c.name.in_(periods))
        query = query if payer is None else query.where(figures.c.user_id == payer)
        spent: dict[str, datetime] = {}
        for row in await self.database.rows(query) if periods else ():
            if row.value >= periods[row.name].most:
                until = periods[row.name].until
                spent[row.user_id] = max(until, spent.get(row.user_id, until))
        return spent

    def _periods(self) -> Iterator[_Period]:
        hour = self.clock().replace(minute=0, second=0, microsecond=0)
        day = hour.replace(hour=0)
        if self.per_hour:
            yield _Period(f"{COUNTED}{hour:%Y-%m-%d %H}", self.per_hour, hour + timedelta(hours=1))
        if self.per_day:
            yield _Period(f"{COUNTED}{day:%Y-%m-%d}", self.per_day, day + timedelta(days=1))
