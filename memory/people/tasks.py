"""Open tasks: what a person wants to be reminded of or kept track of. A task is its user's alone.

Where no id says which task is meant, its words do. The same words are one task, whatever their order, case,
accents, punctuation and small words. Beyond that, noting a task is careful: where each of two names a day, a
number or a person that the other lacks, they are two, since one too many is seen and one too few is not.
Finishing is lenient: "dentist" finishes "call the dentist", where nothing else that is open can be meant.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Literal

from rapidfuzz import fuzz
from sqlalchemy import Select, bindparam, case, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.errors import NotFound
from memory.people.task_wording import adds, forms_in, may_mean, same_words, told, wording
from memory.records import Task, TaskStatus
from memory.spans import new_id
from memory.sql.engine import Database
from memory.sql.messages import missing
from memory.sql.tables import tasks
from memory.text import storable

SOON = timedelta(hours=48)
"""What is due within this time bears on a turn, whatever is talked about."""
MOST_READ = 200
"""Open tasks that are looked at for a turn: the due ones, then the newest …"""
MOST_COMPARED = 500
"""… and to find the one that is meant: the newest."""
LONGEST_QUESTION = 2_000
"""Characters of what was said, its end, that are read for words it shares with tasks."""
MOST_NAMED = 5
"""Candidates that are named where several can be meant."""
NEAR, CLOSE = 60.0, 85.0
"""SimilarFacts (0 to 100) from which a task may have been meant, and from which a new one resembles it."""

Due = datetime | Literal["never"] | None
"""An aware time; "never" takes the one there was away; None leaves it as it is."""


_COLUMNS = [tasks.c[field.name] for field in fields(Task)]


class Unclear(NotFound):
    """Which task is meant cannot be told; the text names those it can be, with the starts of their ids."""

    def __init__(self, why: str, candidates: Sequence[Task]) -> None:
        self.candidates = tuple(candidates[:MOST_NAMED])
        ids = [task.id for task in self.candidates]
        length = next((n for n in (8, 13, 18) if len({id[:n] for id in ids}) == len(ids)), 36)
        named = [f"[task {task.id[:length]}] {_line(task.description)}" for task in self.candidates]
        more = len(candidates) - len(named)
        super().__init__(f"{why}: " + "; ".join(named) + (f"; and {more} more" if more else ""))


def _line(description: str) -> str:
    """Without what could drive the terminal on which it is shown."""
    line = " ".join(description.split())[:100]
    return "".join(letter for letter in line if letter.isprintable())


@dataclass(frozen=True, slots=True)
class Change:
    """What became of an update."""

    task: Task
    action: Literal["made", "changed", "unchanged"]
    close: tuple[Task, ...] = ()
    """Open tasks that the one just made resembles."""


class Tasks:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(
        self,
        user: str,
        description: str,
        status: TaskStatus | None = None,
        *,
        now: datetime,
        id: str | None = None,
        due: Due = None,
        place: str = "",
    ) -> Task:
        """The task as `update` leaves it."""
        return (await self.update(user, description, status, now=now, id=id, due=due, place=place)).task

    async def update(
        self,
        user: str,
        description: str,
        status: TaskStatus | None = None,
        *,
        now: datetime,
        id: str | None = None,
        due: Due = None,
        place: str = "",
        alike: bool = True,
        found_at: datetime | None = None,
        heard: str | None = None,
    ) -> Change:
        """Make, change or finish a task. What is left out (blank or None) stays as it is; a new one is open.

        `id` is a whole id, or 4 and more of its first characters. Without one, the unfinished task is taken
        that the description means (with `alike` False: of the same words); its own description stays unless
        the new one says more, and "open" does not take it back from "in_progress". Where there is none, one
        is made; but to finish, there must be one. One of the same words that is finished stays as it is.

        `found_at` is for work that may be done twice: a task of the same words that was finished since then
        is not made again. `heard` is the message that asks for it: where that is gone, who said it was erased
        meanwhile, and nothing is kept.

        In a place only what was asked for there can be meant; in private, anything of the user's, but words
        said in private do not become those of a task that others see. Raises
        NotFound where the task is not there, Unclear where several can be meant; then nothing is changed.
        """
        if any(isinstance(time, datetime) and time.tzinfo is None for time in (now, due)):
            raise ValueError("a time without a zone; Hachi's times are aware UTC")
        said = storable(description).strip()
        if id is None and not said:
            raise NotFound("no task is named; give its id, or a description")
        mine = select(*_COLUMNS).where(tasks.c.user_id == user, *([tasks.c.place == place] if place else []))
        async with self._database.write(lock=[f"tasks:{user}"]) as connection:
            if heard is not None and await missing(connection, [heard]):
                raise NotFound("the message that asked for it has been erased; nothing was kept")
            if id is not None:
                old, asked_in = await _named(connection, mine, id)
                # Words said in private do not become those of a task that others see.
                words = said if asked_in == place else ""
                new = replace(old, description=words or old.description, status=status or old.status)
            else:
                open_, here = await _unfinished(connection, mine, place)
                meant = _meant(said, status, open_, here, alike)
                if (
                    meant is None
                    and found_at
                    and (done := await _done_since(connection, mine, said, found_at))
                ):
                    return Change(done, "unchanged")
                if meant is None and status == "done":
                    return Change(await _finished_before(connection, mine, said, open_), "unchanged")
                if meant is None:
                    task = Task(new_id(), user, said, status or "open", now, now, _time(due))
                    await connection.execute(insert(tasks).values(**asdict(task), place=place))
                    return Change(task, "made", tuple(_near(said, open_, CLOSE)))
                old, new = meant, _advanced(meant, said if meant.id in here else "", status)
            new = new if due is None else replace(new, due=_time(due))
            return await _written(connection, old, new, now)

    async def relevant(
        self, user: str, question: str, *, place: str | None = None, now: datetime, limit: int = 10
    ) -> Sequence[Task]:
        """The open tasks that bear on what was said, or fall due: first what is overdue or due within `SOON`,
        then what shares words with the question, then the newest. With a place's key only those asked for
        there; None or "" is in private, where all are."""
        soon = now + SOON
        asked = forms_in(question[-LONGEST_QUESTION:])
        given = {"user": user, "soon": soon} | ({"place": place} if place else {})
        async with self._database.read() as connection:
            found = [Task(*row) for row in await connection.execute(_bearing(bool(place)), given)]

        def rank(task: Task) -> tuple[bool, int, timedelta]:
            shared = len(asked & forms_in(task.description))
            if task.due is None or task.due > soon:
                return True, -shared, timedelta()
            return False, -shared, abs(task.due - now)

        return sorted(found, key=rank)[:limit]  # of equals, the order of the query

    async def list(self, user: str, *, done: bool = False, place: str | None = None) -> list[Task]:
        """The user's tasks, newest first; finished ones only when asked for. With a place's key only those
        asked for there: what is read out in a channel must not show what was asked for in private."""
        query = select(*_COLUMNS).where(tasks.c.user_id == user).order_by(tasks.c.created_at.desc())
        if place is not None:
            query = query.where(tasks.c.place == place)
        if not done:
            query = query.where(tasks.c.status != "done")
        async with self._database.read() as connection:
            return await _read(connection, query)


@cache
def _bearing(in_a_place: bool) -> Select[Any]:
    """Made once, since making it takes as long as running it."""
    falling_due = case((tasks.c.due <= bindparam("soon"), tasks.c.due))
    query = select(*_COLUMNS).where(tasks.c.user_id == bindparam("user"), tasks.c.status != "done")
    query = query.where(tasks.c.place == bindparam("place")) if in_a_place else query
    order = (falling_due.desc().nulls_last(), tasks.c.created_at.desc(), tasks.c.id)
    return query.order_by(*order).limit(MOST_READ)


async def _read(connection: AsyncConnection, query: Select[Any]) -> list[Task]:
    return [Task(*row) for row in await connection.execute(query)]


def _id_is(id: str) -> Any:
    """A whole id, or the beginning of one, as people type it."""
    id = id.strip().lower()
    return tasks.c.id.startswith(id, autoescape=True) if len(id) >= 4 else tasks.c.id == id


async def _named(connection: AsyncConnection, mine: Select[Any], id: str) -> tuple[Task, str]:
    """The task of this id, and the place where it was asked for."""
    query = mine.add_columns(tasks.c.place).where(_id_is(id)).limit(MOST_NAMED + 1)
    rows = (await connection.execute(query)).all()
    task = _the_one(id, [Task(*row[:-1]) for row in rows])
    return task, rows[0].place


def _the_one(id: str, found: Sequence[Task]) -> Task:
    if not found:
        raise NotFound(f"no task {id[:80]!r}; give null to make a new one")
    if len(found) > 1:
        raise Unclear(f"{id!r} begins the ids of several tasks", found)
    return found[0]


async def _written(connection: AsyncConnection, old: Task, new: Task, now: datetime) -> Change:
    if new == old:
        return Change(old, "unchanged")
    new = replace(new, last_updated=now)
    await connection.execute(update(tasks).where(tasks.c.id == old.id).values(**asdict(new)))
    return Change(new, "changed")


async def _unfinished(
    connection: AsyncConnection, mine: Select[Any], place: str
) -> tuple[list[Task], frozenset[str]]:
    """What was asked for in this very place comes first, then the newest. With the ids of the former: words
    said in private do not become those of a task that others see."""
    order = (tasks.c.place != place, tasks.c.created_at.desc(), tasks.c.id)
    query = mine.add_columns(tasks.c.place).where(tasks.c.status != "done").order_by(*order)
    rows = (await connection.execute(query.limit(MOST_COMPARED))).all()
    return [Task(*row[:-1]) for row in rows], frozenset(row.id for row in rows if row.place == place)


def _meant(
    said: str, status: TaskStatus | None, open_: Sequence[Task], here: frozenset[str], alike: bool
) -> Task | None:
    """The unfinished task of these words; else the only one that they can mean."""
    same = [task for task in open_ if same_words(said, task.description)]
    if same or not alike:
        return same[0] if same else None
    if status in (None, "open"):
        own = [task for task in open_ if task.id in here]
        near = [t for t in own if adds(said, t.description) or adds(t.description, said)]
        return near[0] if len(near) == 1 else None
    fitting = [task for task in open_ if may_mean(said, task.description)]
    size = len(told(said))
    whole = [task for task in fitting if len(wording(task.description).words) == size]
    fitting = whole if len(whole) == 1 else fitting
    if len(fitting) > 1:
        raise Unclear(
            f"{said[:80]!r} can mean several open tasks, so nothing was changed; give an id", fitting
        )
    return fitting[0] if fitting else None


async def _finished_before(
    connection: AsyncConnection, mine: Select[Any], said: str, open_: Sequence[Task]
) -> Task:
    query = mine.where(tasks.c.status == "done").order_by(tasks.c.last_updated.desc()).limit(MOST_COMPARED)
    for task in await _read(connection, query):
        if same_words(said, task.description):
            return task
    if not open_:
        raise NotFound(f"no task is open, so there is no {said[:80]!r} to finish; nothing was changed")
    why = (
        f"no open task is surely {said[:80]!r}, so nothing was changed; give the id if one of these is meant"
    )
    raise Unclear(why, _near(said, open_, NEAR) or open_)


async def _done_since(
    connection: AsyncConnection, mine: Select[Any], said: str, since: datetime
) -> Task | None:
    query = mine.where(tasks.c.status == "done", tasks.c.last_updated >= since).limit(MOST_COMPARED)
    return next((t for t in await _read(connection, query) if same_words(said, t.description)), None)


def _advanced(task: Task, said: str, status: TaskStatus | None) -> Task:
    """As it is when only words tell which is meant: it goes on, and says what is said if that is more."""
    description = said if said and status != "done" and adds(said, task.description) else task.description
    return replace(task, description=description, status=task.status if status in (None, "open") else status)


def _time(due: Due) -> datetime | None:
    return due.astimezone(UTC) if isinstance(due, datetime) else None


def _near(said: str, open_: Sequence[Task], least: float) -> list[Task]:
    """Those of like letters, the likest first."""
    scores = {t.id: fuzz.token_set_ratio(wording(said).text, wording(t.description).text) for t in open_}
    return sorted((t for t in open_ if scores[t.id] >= least), key=lambda task: -scores[task.id])[:MOST_NAMED]
