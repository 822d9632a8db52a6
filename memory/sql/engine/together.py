"""Reads that belong together, in one statement.

`Database.together` runs several reads at once. Each waits where it asks for rows; when all of them wait or
have ended, what they wait for is asked as one UNION ALL. Columns of one type share a place in its rows; the
others are NULL.
"""

import asyncio
from collections import namedtuple
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    CompoundSelect,
    Select,
    cast,
    func,
    literal_column,
    null,
    select,
    union_all,
)
from sqlalchemy.sql.type_api import TypeEngine
from sqlalchemy.sql.visitors import cloned_traverse

Rows = Sequence[Any]
Ask = Callable[[Any, Mapping[str, Any] | None], Awaitable[Rows]]


class _Waiting(NamedTuple):
    statement: Any
    values: Mapping[str, Any]
    rows: "asyncio.Future[Rows]"


class Together:
    """Statements must be SELECTs that are built once: what unites them is built once too."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._waiting: list[_Waiting] = []
        self._still = asyncio.Event()
        self._reading = 0
        """How many reads neither wait nor have ended."""
        self._tasks: Sequence[asyncio.Task[Any]] = ()

    async def run(self, *reads: Coroutine[Any, Any, Any]) -> list[Any]:
        """Returns what the reads return. Raises what the first that fails raises, when all have ended."""
        self._reading = len(reads)
        mine = READING.set(self)
        self._tasks = tasks = [asyncio.create_task(read) for read in reads]
        READING.reset(mine)
        for task in tasks:
            task.add_done_callback(self._ended)
        try:
            while await self._still.wait() and self._waiting:
                self._still.clear()
                waiting, self._waiting = self._waiting, []
                self._reading += len(waiting)
                await self._answer(waiting)
        finally:
            self._tasks = ()
            for task in tasks:
                task.cancel()
        return [await task for task in tasks]

    async def rows(self, statement: Any, values: Mapping[str, Any] | None) -> Rows:
        """The rows of a statement of one of the reads."""
        if asyncio.current_task() not in self._tasks:  # one that a read began, whose end nobody counts
            return await self._ask(statement, values)
        found = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(statement, values or {}, found))
        self._count()
        rows: Rows = await found
        return rows

    def _ended(self, _: "asyncio.Task[Any]") -> None:
        self._count()

    def _count(self) -> None:
        self._reading -= 1
        if not self._reading:
            self._still.set()

    async def _answer(self, waiting: Sequence[_Waiting]) -> None:
        try:
            if len(waiting) < 2:
                found = [await self._ask(one.statement, one.values) for one in waiting]
            else:
                whole, made = _united(tuple(one.statement for one in waiting))
                values = {
                    f"{n}_{name}": value
                    for n, one in enumerate(waiting)
                    for name, value in one.values.items()
                }
                found = [[] for _ in waiting]
                for row in sorted(await self._ask(whole, values), key=itemgetter(0, 1)):
                    found[row[0]].append(made[row[0]](row))
        except Exception as error:
            for one in waiting:
                one.rows.set_exception(error)
        else:
            for one, rows in zip(waiting, found, strict=True):
                one.rows.set_result(rows)


READING: ContextVar[Together | None] = ContextVar("reading together", default=None)


@lru_cache(maxsize=64)
def _united(statements: tuple[Select[Any], ...]) -> tuple[CompoundSelect[Any], list[Callable[[Any], Any]]]:
    """One statement for all, whose parameters bear the number of theirs; and for each what makes its rows. A
    row begins with the number of its statement and its own there: to order them all would take the database
    longer than us."""
    columns: list[TypeEngine[Any]] = []
    made, places = list[Callable[[Any], Any]](), list[list[int]]()
    for statement in statements:
        own = list[int]()
        for one in statement.selected_columns:
            alike = (at for at, type in enumerate(columns) if repr(type) == repr(one.type) and at not in own)
            own.append(next(alike, len(columns)))
            if own[-1] == len(columns):
                columns.append(one.type)
        kind = namedtuple("Row", [str(one.key) for one in statement.selected_columns], rename=True)  # type: ignore[misc]
        places.append(own)
        made.append(partial(_row, kind, itemgetter(0, *(at + 2 for at in own))))
    parts = []
    for number, (statement, own) in enumerate(zip(statements, places, strict=True)):
        asked = _numbered(statement, number).subquery()
        there = dict(zip(own, asked.c, strict=True))
        shown = [there.get(at, cast(null(), type)).label(f"c{at}") for at, type in enumerate(columns)]
        order = func.row_number().over().label("nr")
        parts.append(select(literal_column(str(number)).label("part"), order, *shown).select_from(asked))
    return union_all(*parts), made


def _row(kind: Any, places: Callable[[Any], Any], row: Any) -> Any:
    return kind._make(places(row)[1:])


def _numbered(statement: Select[Any], number: int) -> Select[Any]:
    def number_parameter(parameter: BindParameter[Any]) -> None:
        if not parameter.unique:
            parameter.key = parameter._orig_key = f"{number}_{parameter.key}"

    numbered: Select[Any] = cloned_traverse(statement, {}, {"bindparam": number_parameter})
    return numbered
