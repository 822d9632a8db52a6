"""Send the reminders of due tasks, in the place where they were requested.

Each surface registers a sender under the prefix of its user ids (``discord:``). If no sender in this process
matches a user, their tasks wait for a process with a matching sender.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Annotated

from agent.types import TurnRequest
from agent.types.arguments import Argument, ShortText, async_function
from agent.types.checks import checks_arguments
from memory.people.due_tasks import DueTasks, Reminder, is_family
from memory.people.profile import UserContext
from memory.process.spans import new_id
from memory.records import Message, Task
from memory.sql.jobs.deliveries import note_origins
from memory.sql.jobs.job import Job, StaleClaim
from memory.sql.rests_on import record, statements_of
from memory.sql.tables import work as work_table
from memory.text import one_line

if TYPE_CHECKING:
    from agent.wiring.components import Components

log = logging.getLogger("hachi.reminders")

SECONDS = 60.0
"""Seconds that sending one reminder may take."""
PATIENCE = 5.0
"""Seconds that `run` waits for several senders. A slower one continues in the background."""
LATE = timedelta(hours=1)
"""A reminder this late, because no process ran, gives the due time even if no zone is known."""
LONGEST = 300
"""The most characters of a task in a reminder."""

Send = Annotated[Callable[[Reminder, str], Awaitable[bool | str]], Argument(async_function)]
"""Sends `text`, made by `text_of`, to `reminder.task.user_id`. Returns whether it reached the person, or the
cross-platform id of its post (``discord:1234``). After False or an error it is retried, up to eight times in
all."""


@checks_arguments
class Reminders:
    def __init__(self, parts: "Components") -> None:
        self._parts = parts
        self._due = DueTasks(parts.database, parts.queue)
        self._senders: dict[str, Send] = {}
        self._at_work: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._late: set[asyncio.Task[int]] = set()

    def register(self, prefix: ShortText, send: Send) -> Callable[[], None]:
        """Use `send` for users whose ids begin with `prefix`. It ends with a colon, is empty, or is a whole
        user id; the longest match wins. Returns a function that removes the sender."""
        self._senders[prefix] = send

        def unregister() -> None:
            if self._senders.get(prefix) is send:
                del self._senders[prefix]

        return unregister

    def reaches(self, user: ShortText) -> bool:
        """Whether somebody in this process sends reminders to the user."""
        return bool(self._fitting(user))

    async def run(self) -> int:
        """Announce all due tasks, all senders at once, so that one that hangs does not delay the others.
        Returns how many reminders were delivered. Raises StoreUnavailable."""
        if len(self._senders) == 1:
            return await self._announce_by(*self._senders)
        idle = [prefix for prefix in self._senders if not self._at_work[prefix].locked()]
        tasks = {asyncio.create_task(self._announce_by(prefix), name="hachi reminders") for prefix in idle}
        if not tasks:
            return 0
        done, late = await asyncio.wait(tasks, timeout=PATIENCE)
        for task in late:
            self._late.add(task)
            task.add_done_callback(self._ended)
        return sum([task.result() for task in done])

    def _ended(self, task: asyncio.Task[int]) -> None:
        self._late.discard(task)
        if not task.cancelled() and (fault := task.exception()):
            log.warning("reminders wait: %s", fault)

    async def stop(self) -> None:
        """Cancel senders that hang. Their reminders are sent later."""
        late = list(self._late)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _announce_by(self, prefix: str) -> int:
        """Announce the due tasks of this sender's users. Returns how many reminders were delivered."""
        reached, longer = 0, [one for one in self._senders if one != prefix and one.startswith(prefix)]
        async with self._at_work[prefix]:
            await self._parts.queue.take_up(self._parts.clock())
            await self._due.take([prefix], self._parts.clock())
            for id in await self._due.waiting([prefix], self._parts.clock(), longer):
                if piece := await self._parts.queue.claim(self._parts.clock(), id):
                    with suppress(StaleClaim):  # the person was erased, or another process was quicker
                        async with self._parts.queue.working_on(piece):
                            reached += await self._announce(piece)
        return reached

    async def _announce(self, piece: Job) -> bool:
        reminder = await self._due.reminder_of(piece)
        if reminder is None:
            await self._parts.queue.done(piece)
            return False
        context = await self._parts.profiles.view(piece.user_id, reminder.place, self._parts.clock())
        text = text_of(reminder.task, context, self._parts.clock())
        try:
            async with asyncio.timeout(SECONDS):
                sent = await self._sender(piece.user_id)(reminder, text)
            error = "" if sent else "it did not reach them"
        except Exception as fault:
            sent, error = False, f"{type(fault).__name__}: {fault}"
        if not sent:
            log.warning("reminder %s waits, attempt %d: %s", piece.id, piece.attempts, error)
            await self._parts.queue.failed(piece, error, self._parts.clock())
            return False
        await self._note(piece, reminder, text, sent if isinstance(sent, str) else "")
        return True

    def _sender(self, user: str) -> Send:
        return self._senders[max(self._fitting(user), key=len)]

    def _fitting(self, user: str) -> list[str]:
        return [
            prefix
            for prefix in self._senders
            if user == prefix or (is_family(prefix) and user.startswith(prefix))
        ]

    async def _note(self, piece: Job, reminder: Reminder, text: str, post: str) -> None:
        """Store the reminder and its post in the transcript, so that the model understands "done!", and
        delete the job. Forgetting the request for it forgets it too."""
        now = self._parts.clock()
        talk = reminder.conversation or TurnRequest("", piece.user_id, now, reminder.place).conversation_id
        message = Message(new_id(), talk, "assistant", "hachi", text, now)
        async with self._parts.database.write() as connection:
            await connection.execute(work_table.delete().where(work_table.c.id == piece.id))
            await self._parts.transcript.append(
                connection, message, user=piece.user_id, place=reminder.place, now=now
            )
            asked = await connection.scalars(statements_of([reminder.task.id]))
            await record(connection, message.id, asked, "found")
            if post:
                await note_origins(connection, message.id, [post], posted=True)


def text_of(task: Task, context: UserContext, now: datetime) -> str:
    """Return the reminder for a due task: one line, with the time in the person's time zone."""
    assert task.due is not None
    timed = context.profile.timezone or now - task.due > LATE
    return f"{words_of(task)} {_time(task.due, context.zone)}" if timed else words_of(task)


def words_of(task: Task) -> str:
    """Return the reminder without a time. It has only the person's own words, so it fits any language."""
    return f"⏰ “{_quoted(task.description)}”"


def _quoted(description: str) -> str:
    """Return the description on one line, without characters that could end the quotation."""
    line = one_line(description).translate(_QUOTES)
    return line if len(line) <= LONGEST else line[:LONGEST].rstrip() + " …"


_QUOTES = {ord(mark): "'" for mark in '“”„«»"'}


def _time(moment: datetime, zone: tzinfo) -> str:
    shown = moment.astimezone(zone)
    return f"{shown:%Y-%m-%d %H:%M} ({shown.tzname()})"
