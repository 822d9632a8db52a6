"""Send the reminders of due tasks, in the place where they were requested.

Each surface registers a sender under the prefix of its user ids (``discord:``). If no sender in this process
matches a user, their tasks wait for a process with a matching sender.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

from agent.types import TurnRequest
from agent.types.arguments import Argument, ShortText, async_function
from agent.types.checks import checks_arguments
from memory.people.due_tasks import DueTasks, Reminder, longest_prefix
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
_QUOTES = {ord(mark): "'" for mark in '“”„«»"'}
"""The marks that could end the quotation of a task."""

Send = Annotated[Callable[[Reminder, str], Awaitable[bool | str]], Argument(async_function)]
"""Sends `text`, made by `reminder_text`, to `reminder.task.user_id`. Returns whether it reached the person,
or the cross-platform id of its post (``discord:1234``). After False or an error it is retried, up to eight
times in all."""


@checks_arguments
@dataclass(frozen=True)
class Reminders:
    parts: "Components"
    _senders: dict[str, Send] = field(default_factory=dict)
    _running: dict[str, asyncio.Task[int]] = field(default_factory=dict)
    """By prefix: the last run of each sender."""

    @property
    def _due(self) -> DueTasks:
        return DueTasks(self.parts.database, self.parts.queue)

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
        return longest_prefix(user, self._senders) is not None

    async def run(self) -> int:
        """Announce all due tasks, all senders at once, so that one that hangs does not delay the others.
        Returns how many reminders were delivered. Raises StoreUnavailable."""
        running = {prefix for prefix, task in self._running.items() if not task.done()}
        started = {
            prefix: asyncio.create_task(self._announce_by(prefix), name="hachi reminders")
            for prefix in self._senders.keys() - running
        }
        if not started:
            return 0
        self._running.update(started)
        patience = PATIENCE if len(self._senders) > 1 else None
        done, late = await asyncio.wait(started.values(), timeout=patience)
        for task in late:
            task.add_done_callback(_log_failure)
        return sum([task.result() for task in done])

    async def stop(self) -> None:
        """Cancel senders that hang. Their reminders are sent later."""
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _announce_by(self, prefix: str) -> int:
        """Announce the due tasks of this sender's users. Returns how many reminders were delivered."""
        reached, send = 0, self._senders[prefix]
        longer = [one for one in self._senders if one != prefix and one.startswith(prefix)]
        await self.parts.queue.take_up(self.parts.clock())
        await self._due.take([prefix], self.parts.clock())
        for id in await self._due.waiting([prefix], self.parts.clock(), longer):
            if job := await self.parts.queue.claim(self.parts.clock(), id):
                with suppress(StaleClaim):  # the person was erased, or another process was quicker
                    async with self.parts.queue.working_on(job):
                        reached += await self._announce(job, send)
        return reached

    async def _announce(self, job: Job, send: Send) -> bool:
        reminder = await self._due.reminder_of(job)
        if reminder is None:
            await self.parts.queue.done(job)
            return False
        context = await self.parts.profiles.view(job.user_id, reminder.place, self.parts.clock())
        text = reminder_text(reminder.task, context, self.parts.clock())
        try:
            async with asyncio.timeout(SECONDS):
                sent = await send(reminder, text)
            error = "" if sent else "it did not reach them"
        except Exception as fault:
            sent, error = False, f"{type(fault).__name__}: {fault}"
        if not sent:
            log.warning("reminder %s waits, attempt %d: %s", job.id, job.attempts, error)
            await self.parts.queue.failed(job, error, self.parts.clock())
            return False
        await self._note(job, reminder, text, sent if isinstance(sent, str) else "")
        return True

    async def _note(self, job: Job, reminder: Reminder, text: str, post: str) -> None:
        """Store the reminder and its post in the transcript, so that the model understands "done!", and
        delete the job. Forgetting the request for it forgets it too."""
        now = self.parts.clock()
        talk = reminder.conversation or TurnRequest("", job.user_id, now, reminder.place).conversation_id
        message = Message(new_id(), talk, "assistant", "hachi", text, now)
        async with self.parts.database.write() as connection:
            await connection.execute(work_table.delete().where(work_table.c.id == job.id))
            await self.parts.transcript.append(
                connection, message, user=job.user_id, place=reminder.place, now=now
            )
            statements = await connection.scalars(statements_of([reminder.task.id]))
            await record(connection, message.id, statements, "found")
            if post:
                await note_origins(connection, message.id, [post], posted=True)


def _log_failure(task: asyncio.Task[int]) -> None:
    if not task.cancelled() and (fault := task.exception()):
        log.warning("reminders wait: %s", fault)


def reminder_text(task: Task, context: UserContext, now: datetime) -> str:
    """Return the reminder for a due task: one line, with the time in the person's time zone."""
    assert task.due is not None
    timed = context.profile.timezone or now - task.due > LATE
    due = task.due.astimezone(context.zone)
    return quoted_task(task) + (f" {due:%Y-%m-%d %H:%M} ({due.tzname()})" if timed else "")


def quoted_task(task: Task) -> str:
    """Return the reminder without a time. It has only the person's own words, so it fits any language."""
    line = one_line(task.description).translate(_QUOTES)
    return f"⏰ “{line if len(line) <= LONGEST else line[:LONGEST].rstrip() + ' …'}”"
