"""How many model calls consolidation may make in a day, for each person and each place.

The owner of a conversation pays: the person in private, or the place. The calls are counted in the database,
so the limits hold for all processes together and over restarts. The jobs of an owner who has none left wait
in the queue.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import bindparam, delete, or_, select
from sqlalchemy.dialects.postgresql import insert

from agent.services.statistics import WaitingForCalls
from memory.process.breaker import NotNow
from memory.sql.engine import Database
from memory.sql.messages.summaries import CONSOLIDATE
from memory.sql.tables import figures, work

log = logging.getLogger("hachi.upkeep")

COUNTED = "upkeep calls "
"""Begins the name of a figure; the day follows."""


# Built once, since building them takes longer than running them.
_COUNT = (
    insert(figures)
    .values(user_id=bindparam("payer"), name=bindparam("period"), value=1)
    .on_conflict_do_update(
        index_elements=["user_id", "name"],
        set_={"value": figures.c.value + 1},
        where=figures.c.value < bindparam("most"),
    )
    .returning(figures.c.value)
)
_PAYER = bindparam("payer", type_=figures.c.user_id.type)
_COUNTED = select(figures).where(
    figures.c.name.in_(bindparam("names", expanding=True)), or_(_PAYER.is_(None), figures.c.user_id == _PAYER)
)


class BudgetSpent(NotNow):
    """The owner has no calls left in this day."""


class _Period(NamedTuple):
    name: str
    most: int
    until: datetime


@dataclass(frozen=True)
class ConsolidationBudget:
    database: Database
    clock: Callable[[], datetime]
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
        async with self.database.write() as connection:
            for period in periods:
                given = {"payer": payer, "period": period.name, "most": period.most}
                number = (await connection.execute(_COUNT, given)).scalar()
                if number is None:
                    raise BudgetSpent(f"{payer} has no upkeep calls left", period.until)
                if number == 1:  # those of earlier periods go
                    others = figures.c.name.not_in([period.name for period in periods])
                    here = figures.c.user_id == payer, figures.c.name.startswith(COUNTED)
                    await connection.execute(delete(figures).where(*here, others))
                if number == period.most:
                    until = f"{period.until:%Y-%m-%d %H:%M}"
                    log.warning("the upkeep of %s waits from the next call on, until %s UTC", payer, until)

    async def waiting(self) -> WaitingForCalls:
        """Return how much waits for calls, of everybody."""
        if not (spent := await self._spent()):
            return WaitingForCalls()
        rows = await self.database.rows(select(work.c.user_id).where(work.c.kind == CONSOLIDATE))
        waits = [spent[row.user_id] for row in rows if row.user_id in spent]
        return WaitingForCalls(len(waits), max(waits, default=None))

    async def _spent(self, payer: str | None = None) -> dict[str, datetime]:
        """Return those who have no calls left, or this one, each with the time until which it is so."""
        periods = {period.name: period for period in self._periods()}
        given = {"payer": payer, "names": [*periods]}
        spent: dict[str, datetime] = {}
        for row in await self.database.rows(_COUNTED, given) if periods else ():
            if row.value >= periods[row.name].most:
                until = periods[row.name].until
                spent[row.user_id] = max(until, spent.get(row.user_id, until))
        return spent

    def _periods(self) -> Iterator[_Period]:
        day = self.clock().replace(hour=0, minute=0, second=0, microsecond=0)
        if self.per_day:
            yield _Period(f"{COUNTED}{day:%Y-%m-%d}", self.per_day, day + timedelta(days=1))
