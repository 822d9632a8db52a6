"""Keep a person's to-dos and reminders.

A task is identified by its id or by its words. Only the same words are the same task, since people notice a
task too many but not a missing one. Finishing is lenient: "dentist" finishes "call the dentist" if the word
stands in no other open task. In a place, only its own tasks are read or changed; in private, all.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Literal

from rapidfuzz import fuzz
from sqlalchemy import Select, bindparam, case, insert, select, true, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place
from memory.errors import NotFound
from memory.facts.compare import normalise, same_words, within
from memory.index.bm25 import stems
from memory.process.spans import new_id
from memory.records import Task, TaskStatus
from memory.sql.engine import Database
from memory.sql.hidden import TASK_IS_HIDDEN
from memory.sql.messages.message_rows import missing
from memory.sql.rests_on import record
from memory.sql.tables import messages, rests_on, tasks
from memory.text import storable

SOON = timedelta(hours=48)
"""Tasks due within this time are relevant to every turn."""
MOST_READ = 200
"""Open tasks that a turn reads: the due ones, then the newest."""
MOST_COMPARED = 500
"""An update by words searches this many of the newest tasks."""
LONGEST_QUESTION = 2_000
"""Only this many characters at the end of a message are searched for words of tasks."""
MOST_NAMED = 5
"""The most candidates that an error names."""
NEAR, CLOSE = 60.0, 85.0
"""Similarities of letters (0 to 100): from the first on an error names a task as possibly meant, and from the
second on a new task resembles another."""

_SHOWN = re.compile(r"\[?\s*(?:task\s+)?#?([^\]]*?)\s*\]?", re.IGNORECASE)

Due = datetime | Literal["never"] | None
"""An aware time; "never" removes the due time; None leaves it as it is."""


_COLUMNS = [tasks.c[field.name] for field in fields(Task)]


def bare_id(id: Any) -> Any:
    """Read the id in "[task 1a2b3c4d]" or a part of it; None if it is blank or "null"."""
    if not isinstance(id, str):
        return id
    found = _SHOWN.fullmatch(id.strip())
    bare = found[1] if found else id.strip()
    return None if bare.lower() in {"", "null", "none", "new"} else bare


class Unclear(NotFound):
    """Several tasks match. The text names them with the beginnings of their ids."""

    def __init__(self, why: str, candidates: Sequence[Task]) -> None:
        self.candidates = tuple(candidates[:MOST_NAMED])
        ids = [task.id for task in self.candidates]
        length = next((n for n in (8, 13, 18) if len({id[:n] for id in ids}) == len(ids)), 36)
        named = [f"[task {task.id[:length]}] {_line(task.description)}" for task in self.candidates]
        more = len(candidates) - len(named)
        super().__init__(f"{why}: " + "; ".join(named) + (f"; and {more} more" if more else ""))


def _line(description: str) -> str:
    """Return the description without control characters, which a terminal would obey."""
    line = " ".join(description.split())[:100]
    return "".join(letter for letter in line if letter.isprintable())


@dataclass(frozen=True, slots=True)
class Change:
    """The result of an update."""

    task: Task
    action: Literal["made", "changed", "unchanged"]
    close: tuple[Task, ...] = ()
    """Open tasks that resemble the new one."""


class Tasks:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def update(
        self,
        user: str,
        description: str,
        status: TaskStatus | None = None,
        *,
        now: datetime,
        id: str | None = None,
        due: Due = None,
        place: Place,
        alike: bool = True,
        read_at: datetime | None = None,
        message_id: str | None = None,
    ) -> Change:
        """Create, change or finish a task. Fields that are blank or None keep their value; a new task is
        open.

        `id` is a whole id or its first 4 characters or more. Without it the unfinished task with the same
        words is meant or, to begin or finish one if `alike`, the only one that the description can mean; it
        keeps its description. If none matches, a new one is created, unless the update finishes a task.

        `read_at` is for jobs that may run twice: a task finished since then is not created again.
        `message_id` is the message that asks: if it was erased, nothing is stored. Raises NotFound if there
        is no such task, Unclear if several match.
        """
        if any(isinstance(time, datetime) and time.tzinfo is None for time in (now, due)):
            raise ValueError("a time without a zone; Hachi's times are aware UTC")
        said = storable(description).strip()
        if id is None and not said:
            raise NotFound("no task is named; give its id, or a description")
        mine = _tasks_of(user, place)
        async with self._database.write(lock=[f"tasks:{user}"]) as connection:
            if message_id is not None and await missing(connection, [message_id]):
                raise NotFound("the message that asked for it has been erased; nothing was kept")
            if id is not None:
                old, asked_in = await _named(connection, mine, id)
                words = said if asked_in == place.stored else ""
                new = replace(old, description=words or old.description, status=status or old.status)
            else:
                open_ = await _unfinished(connection, mine, place)
                meant = _meant(said, status, open_, alike)
                if meant is None:
                    finishing = status == "done"
                    since = None if finishing else read_at
                    done = await _finished(connection, mine, said, since) if finishing or since else None
                    if done:
                        return Change(done, "unchanged")
                    if finishing:
                        raise _nothing_to_finish(said, open_)
                    task = Task(new_id(), user, said, status or "open", now, now, _time(due))
                    await connection.execute(insert(tasks).values(**asdict(task), place=place.stored))
                    await record(connection, task.id, [message_id] if message_id else [], "stated")
                    return Change(task, "made", tuple(_near(said, open_, CLOSE)))
                kept = meant.status if status in (None, "open") else status
                old, new = meant, replace(meant, status=kept)
            new = new if due is None else replace(new, due=_time(due))
            return await _written(connection, old, new, now)

    async def named(self, user: str, id: str, *, place: Place) -> Task:
        """Return the task with this id or prefix. Raises NotFound, or Unclear if several match."""
        mine = _tasks_of(user, place)
        async with self._database.read() as connection:
            return (await _named(connection, mine, id))[0]

    async def relevant(
        self, user: str, question: str, place: Place, *, now: datetime, limit: int = 10
    ) -> Sequence[Task]:
        """Return the open tasks to show in a turn: those due within `SOON`, then those that share words with
        the question, then the newest."""
        soon = now + SOON
        asked = stems(question[-LONGEST_QUESTION:])
        given = {"user": user, "soon": soon} | ({} if place.private else {"place": place.stored})
        found = [Task(*row) for row in await self._database.rows(_relevant(place.private), given)]

        def rank(task: Task) -> tuple[bool, int, timedelta]:
            shared = len(asked & stems(task.description))
            if task.due is None or task.due > soon:
                return True, -shared, timedelta()
            return False, -shared, abs(task.due - now)

        return sorted(found, key=rank)[:limit]  # equal tasks keep the order of the query

    async def mentioned(self, user: str, ids: Collection[str], since: datetime) -> frozenset[str]:
        """Return those of these tasks that were in the prompt of a reply to the user since then."""
        if not ids:
            return frozenset()
        query = select(rests_on.c.source_id).join(messages, messages.c.id == rests_on.c.derived_id)
        query = query.where(rests_on.c.source_id.in_(ids), rests_on.c.how == "found")
        query = query.where(messages.c.user_id == user, messages.c.sent_at >= since)
        return frozenset(row.source_id for row in await self._database.rows(query))

    async def finished(self, user: str, place: Place, since: datetime, limit: int) -> list[Task]:
        """Return the tasks of the user that were finished at `since` or later, the last ones first."""
        query = _tasks_of(user, place).where(tasks.c.status == "done", tasks.c.last_updated >= since)
        rows = await self._database.rows(query.order_by(tasks.c.last_updated.desc()).limit(limit))
        return [Task(*row) for row in rows]

    async def list(self, user: str, place: Place, *, done: bool = False) -> list[Task]:
        """Return the user's open tasks, newest first; with `done` the finished ones too."""
        query = _tasks_of(user, place).order_by(tasks.c.created_at.desc())
        query = query if done else query.where(tasks.c.status != "done")
        return [Task(*row) for row in await self._database.rows(query)]


def _tasks_of(user: str, place: Place) -> Select[Any]:
    """Select the tasks of a user that are not hidden; in a place, those of the place."""
    query = select(*_COLUMNS).where(tasks.c.user_id == user, ~TASK_IS_HIDDEN)
    return query if place.private else query.where(tasks.c.place == place.stored)


@cache  # building it takes as long as running it
def _relevant(private: bool) -> Select[Any]:
    query = select(*_COLUMNS).where(tasks.c.user_id == bindparam("user"), ~TASK_IS_HIDDEN)
    query = query if private else query.where(tasks.c.place == bindparam("place"))
    falling_due = case((tasks.c.due <= bindparam("soon"), tasks.c.due))
    order = (falling_due.desc().nulls_last(), tasks.c.created_at.desc(), tasks.c.id)
    return query.where(tasks.c.status != "done").order_by(*order).limit(MOST_READ)


async def _read(connection: AsyncConnection, query: Select[Any]) -> list[Task]:
    return [Task(*row) for row in await connection.execute(query)]


async def _named(connection: AsyncConnection, mine: Select[Any], id: str) -> tuple[Task, str]:
    """Return the task with this id, or with an id that begins so, and the place it comes from."""
    begun = id.strip().lower()
    same = tasks.c.id.startswith(begun, autoescape=True) if len(begun) >= 4 else tasks.c.id == begun
    rows = (await connection.execute(mine.add_columns(tasks.c.place).where(same).limit(MOST_NAMED + 1))).all()
    found = [Task(*row[:-1]) for row in rows]
    if not found:
        raise NotFound(f"no task {id[:80]!r}; give an id that you were shown, or null and a description")
    if len(found) > 1:
        raise Unclear(f"{id!r} begins the ids of several tasks", found)
    return found[0], rows[0].place


async def _written(connection: AsyncConnection, old: Task, new: Task, now: datetime) -> Change:
    if new == old:
        return Change(old, "unchanged")
    new = replace(new, last_updated=now)
    values = asdict(new)
    del values["reminded"]  # only an announcement sets it, and one may have begun meanwhile
    await connection.execute(update(tasks).where(tasks.c.id == old.id).values(**values))
    return Change(new, "changed")


async def _unfinished(connection: AsyncConnection, mine: Select[Any], place: Place) -> list[Task]:
    """Return the unfinished tasks, those from exactly this place first, then the newest."""
    order = (tasks.c.place != place.stored, tasks.c.created_at.desc(), tasks.c.id)
    query = mine.where(tasks.c.status != "done").order_by(*order)
    return await _read(connection, query.limit(MOST_COMPARED))


def _meant(said: str, status: TaskStatus | None, open_: Sequence[Task], alike: bool) -> Task | None:
    """Return the unfinished task with these words, or, to begin or finish it, the only one they can mean."""
    same = [task for task in open_ if same_words(said, task.description)]
    if same or not alike or status in (None, "open"):
        return same[0] if same else None
    asked, words = normalise(said), {task.id: normalise(task.description) for task in open_}
    fitting = [task for task in open_ if within(asked, words[task.id]) or within(words[task.id], asked)]
    if len(fitting) > 1:
        raise Unclear(
            f"{said[:80]!r} can mean several open tasks, so nothing was changed; give an id", fitting
        )
    return fitting[0] if fitting else None


async def _finished(
    connection: AsyncConnection, mine: Select[Any], said: str, since: datetime | None
) -> Task | None:
    """Return the last finished task with these words, if finished at `since` or later."""
    done = mine.where(tasks.c.status == "done", tasks.c.last_updated >= since if since else true())
    query = done.order_by(tasks.c.last_updated.desc()).limit(MOST_COMPARED)
    return next((t for t in await _read(connection, query) if same_words(said, t.description)), None)


def _nothing_to_finish(said: str, open_: Sequence[Task]) -> NotFound:
    if not open_:
        return NotFound(f"no task is open, so there is no {said[:80]!r} to finish; nothing was changed")
    why = (
        f"no open task is surely {said[:80]!r}, so nothing was changed; give the id if one of these is meant"
    )
    return Unclear(why, _near(said, open_, NEAR) or open_)


def _time(due: Due) -> datetime | None:
    return due.astimezone(UTC) if isinstance(due, datetime) else None


def _near(said: str, open_: Sequence[Task], least: float) -> list[Task]:
    """Return tasks with similar letters, the most similar first."""
    wanted = normalise(said)
    scores = {task.id: fuzz.token_set_ratio(wanted, normalise(task.description)) for task in open_}
    return sorted((t for t in open_ if scores[t.id] >= least), key=lambda task: -scores[task.id])[:MOST_NAMED]
