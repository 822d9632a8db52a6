"""From the running turn to the database: in the background, bounded, and never in the turn's way.

A turn that takes longer than a moment is written while it runs, and again as it goes on, so that one that
hangs or is killed can be seen. Most are written once, after they have ended, several in a transaction.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol
from uuid import uuid4

from agent.errors import ModelError
from agent.tracing.serialization import Serializer, Subject
from agent.tracing.store import Traces
from agent.tracing.trace import TURN, Summary
from agent.types import Reply, TurnRequest
from memory.audience import Place
from memory.errors import StoreUnavailable
from memory.spans import Recording, Span, recording, unrecorded
from memory.sql.jobs import Job

log = logging.getLogger("hachi.traces")

PAUSE = 0.2
"""Seconds during which traces that end are collected, to be written together."""
REWRITE_AFTER = 2.0
"""Seconds after which a running trace is written again if something has happened in it; doubles each time."""
MAX_WAITING = 1_000
"""Traces that wait to be written; beyond these the oldest are dropped."""
BATCH = 50
"""Traces in one transaction, so that a turn that wants to write does not wait long."""
WRITE_TIMEOUT = 10.0
"""Seconds that one batch may take."""
RETRY_AFTER = 5.0
"""Seconds after which a database that could not be reached is tried again."""
FLUSH_TIMEOUT = 2.0
"""Seconds that `flush` waits."""
CLOSE_TIMEOUT = 10.0
"""Seconds that a listener's `close` may take."""


class Listener(Protocol):
    """Is told of each trace that has ended, in a thread. What it raises is logged."""

    def __call__(self, summary: Summary, body: bytes) -> None: ...

    def close(self) -> None: ...


@dataclass(slots=True, eq=False)
class _Recorded:
    """One recording, and how much of it is written."""

    recording: Recording
    subject: Subject
    due: float
    """When to write it next while it runs, by `time.monotonic`."""
    pause: float
    """Seconds until it is written again after that."""
    changes: int = -1
    """`Recording.changes` when it was written last."""
    stored: bool = False

    def worth_keeping(self) -> bool:
        """Every turn is; a background job only if something happened in it."""
        root = self.recording.root
        return self.subject.kind == TURN or bool(root.spans or root.error)

    def belongs_to(self, user: str, places: Collection[str]) -> bool:
        inside = any(f"{self.subject.place}/".startswith(f"{place}/") for place in places)
        return self.subject.user == user or (bool(self.subject.place) and inside)


_Due = tuple[_Recorded, Recording, Subject, bool]
"""The source, its recording and subject (copies while it runs), and whether it has ended."""


@dataclass(frozen=True, slots=True, eq=False)
class _Serialized:
    """A trace that is ready to be written."""

    summary: Summary
    body: bytes
    source: _Recorded
    ended: bool


class Recorder:
    """Starts with the first turn and is closed with the companion."""

    def __init__(
        self,
        traces: Traces,
        serializer: Serializer,
        clock: Callable[[], datetime],
        listeners: Sequence[Listener] = (),
        *,
        on: bool = True,
    ) -> None:
        self._on = on
        self._traces = traces
        self._serializer = serializer
        self._clock = clock
        self._listeners = listeners
        self._running: dict[str, _Recorded] = {}
        self._ended: deque[_Recorded] = deque()
        self._waiting: deque[_Serialized] = deque()
        self._dropped = 0
        self._woken = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None
        self._flushes: set[asyncio.Task[None]] = set()
        self._lock = asyncio.Lock()
        self._closing = False
        self._retry_at = 0.0
        self.last: Recording | None = None
        """What ended last, for callers that ask at once."""

    @contextmanager
    def turn(self, incoming: TurnRequest, model: str, id: str | None = None) -> Iterator["TurnRecording"]:
        """Record a turn. Its exceptions are noted and raised; a ModelError gets the trace's id."""
        subject = Subject(
            TURN,
            self._clock(),
            incoming.user,
            place=key_of(incoming.place),
            conversation=incoming.conversation_id,
            model=model,
            said=incoming.text,
        )
        given = ("text", "author", "conversation", "sent_at", "instructions", "earlier")
        root = Span(TURN, data={"incoming": {name: getattr(incoming, name) for name in given}})
        recorded = Recording(id or f"trace_{uuid4().hex}", root)
        with self._recorded(recorded, subject):
            try:
                yield TurnRecording(recorded, subject)
            except ModelError as error:
                error.trace_id = recorded.id
                log.error("%s: %s", recorded.id, error)
                raise

    @contextmanager
    def work(self, job: Job) -> Iterator[None]:
        """Record a background job; nothing is kept of one in which nothing happened."""
        subject = Subject(
            job.kind,
            self._clock(),
            job.user_id,
            place=key_of(Place(tuple(job.payload.get("place", ())))),
            conversation=job.payload.get("conversation", ""),
            turn_id=job.payload.get("trace"),
        )
        root = Span(job.kind, data={"tries": job.attempts})
        with self._recorded(Recording(f"trace_{uuid4().hex}", root), subject):
            yield

    @contextmanager
    def _recorded(self, recorded: Recording, subject: Subject) -> Iterator[None]:
        if not self._on:
            with unrecorded():
                yield
            return
        one = _Recorded(recorded, subject, due=time.monotonic() + PAUSE / 2, pause=REWRITE_AFTER)
        self._running[recorded.id] = one
        self._woken.set()
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_while_needed(), name="hachi traces")
        try:
            with recording(recorded):
                yield
        finally:
            forgotten = self._running.pop(recorded.id, None) is None
            if not forgotten and one.worth_keeping():
                self._ended.append(one)
                self.last = recorded
            self._drop_oldest()
            self._woken.set()

    def _drop_oldest(self) -> None:
        while len(self._ended) + len(self._waiting) > MAX_WAITING:
            (self._waiting or self._ended).popleft()
            self._dropped += 1

    async def _write_while_needed(self) -> None:
        while not self._closing and (self._ended or self._running or self._waiting):
            self._woken.clear()
            await asyncio.sleep(PAUSE)
            await self._flush()
            if not self._ended:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._until_due()):  # `wait_for` may lose a cancellation
                        await self._woken.wait()

    def _until_due(self) -> float:
        """Seconds until there is something to write."""
        now = time.monotonic()
        dues = [*(one.due for one in self._running.values()), *([self._retry_at] if self._waiting else [])]
        return max(0.0, min(dues, default=now) - now)

    async def flush(self) -> None:
        """Write what has ended, and what is running as far as it is. Returns after `FLUSH_TIMEOUT` at the
        latest and raises nothing: what could not be written yet is tried again."""
        task = asyncio.create_task(self._flush())  # of its own, as the caller may be cancelled
        self._flushes.add(task)
        task.add_done_callback(self._flushes.discard)
        await asyncio.wait([task], timeout=FLUSH_TIMEOUT)

    async def _flush(self, *, last: bool = False) -> None:
        async with self._lock:
            due: list[_Due] = [(one, one.recording, one.subject, True) for one in self._ended]
            self._ended.clear()
            due += self._copies_of_running()
            if due:
                self._waiting.extend(await asyncio.to_thread(self._serialize, due))
            if last or time.monotonic() >= self._retry_at:
                await self._write_waiting()
            self._drop_oldest()
            if self._dropped:
                log.warning("%d traces came faster than they could be written and are dropped", self._dropped)
                self._dropped = 0

    def _copies_of_running(self) -> list[_Due]:
        """The running traces that are due and have changed since they were written last."""
        copies: list[_Due] = []
        now = time.monotonic()
        for one in self._running.values():
            if one.due > now:
                continue
            one.due = now + one.pause
            if one.changes != one.recording.changes and one.worth_keeping():
                one.changes = one.recording.changes
                one.pause *= 2
                copies.append((one, one.recording.as_it_is(), replace(one.subject), False))
        return copies

    def _serialize(self, due: Sequence[_Due]) -> list[_Serialized]:
        """Runs in a thread."""
        found = []
        for source, recorded, subject, ended in due:
            try:
                summary, body = self._serializer.serialize(recorded, subject)
            except Exception as error:
                log.warning("the trace %s could not be written: %r", recorded.id, error)
                continue
            found.append(_Serialized(summary, body, source, ended))
            if ended:
                self._notify(summary, body)
        return found

    def _notify(self, summary: Summary, body: bytes) -> None:
        for listener in self._listeners:
            try:
                listener(summary, body)
            except Exception as error:
                log.warning("a trace could not be sent on: %s", error)

    async def _write_waiting(self) -> None:
        """Batch by batch. A trace that has ended waits until it is written."""
        while self._waiting:
            batch = list(self._waiting)[:BATCH]
            try:
                await self._write(batch)
            except (StoreUnavailable, TimeoutError) as error:
                self._retry_later(error)
                return
            except Exception:
                await self._write_one_by_one(batch)
            written = set(batch)
            self._waiting = deque(one for one in self._waiting if one not in written)
            self._retry_at = 0.0

    async def _write(self, batch: Sequence[_Serialized]) -> None:
        stored = {one.summary.id for one in batch if one.source.stored}
        made_by = self._serializer.made_by_key, self._serializer.made_by
        async with asyncio.timeout(WRITE_TIMEOUT):
            traces = [(one.summary, one.body) for one in batch]
            await self._traces.write(traces, self._clock(), stored, made_by)
        for one in batch:
            one.source.stored = True

    async def _write_one_by_one(self, batch: Sequence[_Serialized]) -> None:
        """If one of them cannot be written, the others can."""
        for one in batch:
            try:
                await self._write([one])
            except Exception as error:
                log.warning("the trace %s could not be written: %s", one.summary.id, error)

    def _retry_later(self, error: Exception) -> None:
        """Traces that have ended are kept; running ones are serialized again anyway."""
        if not self._retry_at:
            reason = str(error) or f"no answer within {WRITE_TIMEOUT:g} s"
            log.warning("traces cannot be written now: %s", reason)
        self._retry_at = time.monotonic() + RETRY_AFTER
        self._waiting = deque(one for one in self._waiting if one.ended)

    async def forget(self, user: str, places: Collection[str] = ()) -> None:
        """Drop what is recorded, written or not, of a person who is erased and of the places where they
        spoke."""
        for id, one in list(self._running.items()):
            if one.belongs_to(user, places):
                del self._running[id]
        async with self._lock:  # what was just being written is in the database then, and erased there
            self._ended = deque(one for one in self._ended if not one.belongs_to(user, places))
            self._waiting = deque(one for one in self._waiting if not one.source.belongs_to(user, places))
        if self.last is not None and self.last.id not in self._running:
            self.last = None

    async def close(self) -> None:
        """Write everything that has ended, if possible, and close the listeners."""
        self._closing = True
        await asyncio.gather(*self._flushes, return_exceptions=True)
        await self._flush(last=True)
        if self._waiting:
            log.warning("%d traces could not be written and are dropped", len(self._waiting))
        if self._writer is not None:
            self._writer.cancel()
            with suppress(asyncio.CancelledError):
                await self._writer
        for listener in self._listeners:
            try:
                await asyncio.wait_for(asyncio.to_thread(listener.close), CLOSE_TIMEOUT)
            except Exception as error:
                log.warning("the last traces could not be sent on: %s", error or type(error).__name__)


class TurnRecording:
    """A turn that is being recorded."""

    def __init__(self, recorded: Recording, subject: Subject) -> None:
        self.id = recorded.id
        self._recorded = recorded
        self._subject = subject

    def heard(self, message_id: str | None) -> None:
        self._subject.message_id = message_id

    def answered(self, reply: Reply) -> None:
        self._subject.reply = reply.message
        told = {"message": reply.message, "message_id": reply.message_id, "calls": reply.calls}
        self._recorded.root.data["reply"] = told


def key_of(place: Place) -> str:
    return "" if place.private else place.key
