"""Open tasks: what a person wants to be reminded of or kept track of. A task is its user's alone."""

from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import insert, select, update

from memory.database import Database
from memory.errors import NotFound
from memory.records import Task, TaskStatus
from memory.tables import tasks


class Tasks:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(
        self,
        user: str,
        description: str,
        status: TaskStatus,
        *,
        now: datetime,
        id: str | None = None,
        due: datetime | None = None,
        place: str = "",
    ) -> Task:
        """Make a task, or change the one of this id (NotFound where the user has none). Without an id, an
        unfinished task of the same words is taken to be meant, so that saying it twice makes one.

        In a place only what was asked for there can be meant; in private, anything of the user's."""
        description = description.strip()
        async with self._database.write(lock=[f"tasks:{user}"]) as connection:
            mine = select(tasks).where(tasks.c.user_id == user)
            if place:
                mine = mine.where(tasks.c.place == place)
            if id is not None:
                found = (await connection.execute(mine.where(_id_is(id)))).all()
                if len(found) != 1:
                    raise NotFound(f"no task {id!r}; give null to make a new one")
                row: Any = found[0]
            else:
                unfinished = await connection.execute(mine.where(tasks.c.status != "done"))
                same = description.casefold()  # the database folds only what is ASCII
                row = next((row for row in unfinished if row.description.casefold() == same), None)
            if row is None:
                task = Task(str(uuid4()), user, description, status, now, now, due)
                await connection.execute(
                    insert(tasks).values(
                        id=task.id,
                        user_id=user,
                        place=place,
                        description=description,
                        status=status,
                        due=due,
                        created_at=now,
                        last_updated=now,
                    )
                )
                return task
            values: dict[str, Any] = {"status": status, "last_updated": now}
            if description:
                values["description"] = description
            if due is not None:
                values["due"] = due
            await connection.execute(update(tasks).where(tasks.c.id == row.id).values(**values))
            return _task((await connection.execute(select(tasks).where(tasks.c.id == row.id))).one())

    async def list(self, user: str, *, done: bool = False, place: str | None = None) -> list[Task]:
        """The user's tasks, newest first; finished ones only when asked for. With a place's key only those
        asked for there: what is read out in a channel must not show what was asked for in private."""
        query = select(tasks).where(tasks.c.user_id == user).order_by(tasks.c.created_at.desc())
        if place is not None:
            query = query.where(tasks.c.place == place)
        if not done:
            query = query.where(tasks.c.status != "done")
        async with self._database.read() as connection:
            return [_task(row) for row in await connection.execute(query)]


def _id_is(id: str) -> Any:
    """A whole id, or the beginning of one, as people type it."""
    return tasks.c.id.startswith(id, autoescape=True) if len(id) >= 4 else tasks.c.id == id


def _task(row: Any) -> Task:
    return Task(row.id, row.user_id, row.description, row.status, row.created_at, row.last_updated, row.due)
