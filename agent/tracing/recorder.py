"""Records turns to the database in the background, with bounded memory and without delaying a turn.

Most turns are written once, after they end, several in a transaction. A long turn is also written while it
runs, so that it is visible if it hangs or is killed.
"""

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol
from uuid import uuid4

from agent.errors import BadInput, HachiError, ModelError
from agent.tracing.serialization import Serializer, StoredTrace, call_arguments, ids_of
from agent.tracing.store.traces import Traces
from agent.tracing.trace import CALL, TURN, Summary, place_key
from agent.types import Reply, TurnRequest
from agent.types.arguments import place_of
from memory.audience import PRIVATE, Place
from memory.errors import StoreUnavailable
from memory.process.breaker import Breaker, CircuitOpen
from memory.process.spans import (
    Recording,
    Span,
    is_recorded,
    note,
    note_rows,
    recording,
    span,
    unrecorded,
)
from memory.sql.jobs.job import Job
from memory.text import storable, without_links

log = logging.getLogger("hachi.traces")

PAUSE = 0.2
"""Seconds during which finished traces are collected for one write."""
REWRITE_AFTER = 2.0
"""Seconds after which a running trace is written again if it has changed; doubles each time."""
MAX_WAITING = 1_000
"""The most traces that may wait to be written. If there are more, the oldest are dropped."""
BATCH = 50
"""The most traces in one transaction, so that no turn has to wait long to write."""

# Seconds for writing one batch; seconds that `flush`, and each step of closing, waits.
WRITE_TIMEOUT, FLUSH_TIMEOUT = 10.0, 2.0


NoteResult = Callable[[object], None]


class Listener(Protocol):
    """Receives each finished trace, in a thread. Its exceptions are logged."""

    def __call__(self, summary: Summary, body: bytes) -> None: ...

    def close(self) -> None: ...


@dataclass(slots=True, eq=False)
class TraceRecording:
    """The recording of a turn or job, and the state of its writes."""

    id: str
    recording: Recording
    about: Summary
    due: float
    """When to write it next while it runs, in `time.monotonic` seconds."""
    pause: float
    """Seconds until the write after that."""
    changes: int = -1
    """`Recording.changes` at the last write."""
    stored: bool = False
    forgotten: set[str] = field(default_factory=set)
    """Ids of rows that were forgotten while this was recorded."""

    def heard(self, message_id: str | None) -> None:
        self.about = replace(self.about, message_id=message_id)

    def answered(self, reply: Reply) -> None:
        message = without_links(reply.message)
        self.about = replace(self.about, reply=message)
        told = {"message": message, "message_id": reply.message_id, "calls": reply.calls}
        self.recording.root.data["reply"] = told

    def worth_keeping(self) -> bool:
        """Return whether to store the trace. Turns are always stored, and jobs if something happened. Calls
        are stored once they have ended, if they failed, searched or wrote; calls that only listed rows are
        not."""
        root = self.recording.root
        if self.about.kind == CALL:
            happened = root.error or self.recording.wrote or any(one.spans for one in root.spans)
            return bool(happened) and not self.recording.open
        return self.about.kind == TURN or bool(root.spans or root.error)

    def belongs_to(self, user: str, places: Collection[str]) -> bool:
        inside = any(f"{self.about.place}/".startswith(f"{place}/") for place in places)
        return self.about.user == user or (bool(self.about.place) and inside)


_Serialized = tuple[TraceRecording, StoredTrace]
"""A trace that is ready to be written."""
_Due = tuple[TraceRecording, Recording, Summary]
"""A trace to write now. If it is still running, the recording is a copy."""


class Recorder:
    """Records turns, jobs and calls. It starts at the first turn and closes with the companion."""

    def __init__(
        self,
        traces: Traces,
        serializer: Serializer,
        clock: Callable[[], datetime],
        listener: Listener | None = None,
        *,
        on: bool = True,
        breaker: Breaker | None = None,
    ) -> None:
        self._on, self._traces, self._serializer = on, traces, serializer
        self._clock, self._listener = clock, listener
        self._running: dict[str, TraceRecording] = {}
        self._ended: list[TraceRecording] = []
        self._waiting: list[_Serialized] = []
        self._writer: asyncio.Task[None] | None = None
        self._flushes: set[asyncio.Task[None]] = set()
        self._lock = asyncio.Lock()
        self._closing = False
        self._breaker = breaker or Breaker("traces database", clock, failures=1)

    @contextmanager
    def turn(self, incoming: TurnRequest, model: str, kind: str = TURN) -> Iterator[TraceRecording]:
        """Record a turn. Exceptions are recorded and re-raised; a HachiError gets the trace's id."""
        about = self._about(kind, incoming.user, incoming.place)
        about = replace(about, conversation=incoming.conversation_id, model=model, said=incoming.text)
        heard = ("text", "author", "conversation", "sent_at")
        told: dict[str, Any] = {"incoming": {name: getattr(incoming, name) for name in heard}} | _host()
        with self._recorded(about, on=not incoming.unkept, **told) as recorded:
            try:
                yield recorded
            except HachiError as error:
                error.trace_id = about.id
                if isinstance(error, ModelError):
                    log.error("%s: %s", about.id, error)
                raise

    @contextmanager
    def work(self, job: Job) -> Iterator[None]:
        """Record a background job; it is stored only if something happened in it."""
        about = self._about(job.kind, job.user_id, Place(tuple(job.payload.get("place", ()))))
        followed, conversation = job.payload.get("trace"), job.payload.get("conversation", "")
        with self._recorded(replace(about, turn_id=followed, conversation=conversation), tries=job.attempts):
            yield

    @contextmanager
    def call(self, method: str, arguments: Mapping[str, Any]) -> Iterator[NoteResult]:
        """Record a call of a service, unless it is part of a recorded turn, job or call. Yields a function
        that takes the result. Texts in arguments are stored only if the trace shows a row, so that they are
        forgotten with it."""
        if is_recorded():
            yield lambda _: None
            return
        user, place = arguments["user"], PRIVATE
        with suppress(BadInput):  # the call reports what is wrong with it
            place = place_of(arguments.get("place"))
        about = self._about(CALL, storable(user) if isinstance(user, str) else None, place)
        with (
            self._recorded(replace(about, said=method)),
            span("tool", method, arguments=call_arguments(arguments, texts=False)) as tool,
        ):

            def returned(result: object) -> None:
                ids = ids_of(result)
                note_rows(ids)
                note(arguments=call_arguments(arguments, texts=bool(ids or (tool and tool.spans))), ok=True)

            yield returned

    def _about(self, kind: str, user: str | None, place: Place) -> Summary:
        id, now = f"trace_{uuid4().hex}", self._clock()
        return Summary(id=id, kind=kind, started_at=now, user=user, place=place_key(place))

    @contextmanager
    def _recorded(self, about: Summary, *, on: bool = True, **data: Any) -> Iterator[TraceRecording]:
        recorded = Recording(about.id, Span(about.kind, data=data))
        one = TraceRecording(about.id, recorded, about, time.monotonic() + PAUSE / 2, REWRITE_AFTER)
        if not (self._on and on):
            with unrecorded():
                yield one
            return
        self._running[about.id] = one
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_while_needed(), name="hachi traces")
        try:
            with recording(recorded):
                yield one
        finally:
            if self._running.pop(about.id, None) is not None and one.worth_keeping():
                self._ended.append(one)

    async def _write_while_needed(self) -> None:
        while not self._closing and (self._ended or self._running or self._waiting):
            await asyncio.sleep(PAUSE)
            await self._flush()

    async def flush(self) -> None:
        """Write the pending traces, for at most `FLUSH_TIMEOUT`. A failed write is retried later."""
        task = asyncio.create_task(self._flush())  # in a separate task, because the caller may be cancelled
        self._flushes.add(task)
        task.add_done_callback(self._flushes.discard)
        await asyncio.wait([task], timeout=FLUSH_TIMEOUT)

    async def _flush(self, *, last: bool = False) -> None:
        async with self._lock:
            ended = [(one, one.recording, one.about) for one in self._ended]
            self._ended.clear()
            if due := [*ended, *self._copies_of_running()]:
                self._waiting += await asyncio.to_thread(self._serialize, due)
            if (dropped := len(self._waiting) - MAX_WAITING) > 0:
                log.warning("%d traces came faster than they could be written and are dropped", dropped)
                del self._waiting[:dropped]
            await self._write_waiting(last=last)

    def _copies_of_running(self) -> Iterator[_Due]:
        """Yield copies of running traces that are due for a write and have changed since the last one."""
        now = time.monotonic()
        for one in self._running.values():
            if one.due > now:
                continue
            one.due = now + one.pause
            if one.changes != one.recording.changes and one.worth_keeping():
                one.changes = one.recording.changes
                one.pause *= 2
                yield one, one.recording.snapshot(), one.about

    def _serialize(self, due: Sequence[_Due]) -> list[_Serialized]:
        """Serialize the traces. Runs in a thread."""
        found = []
        for source, recorded, about in due:
            try:
                stored = self._serializer.serialize(recorded, about).without(source.forgotten)
            except Exception as error:
                log.warning("the trace %s could not be written: %r", recorded.id, error)
                continue
            found.append((source, stored))
            if self._listener and stored.body and not recorded.open:
                try:
                    self._listener(stored.summary, stored.body)
                except Exception as error:
                    log.warning("a trace could not be sent on: %s", error)
        return found

    async def _write_waiting(self, *, last: bool = False) -> None:
        """Write in batches. If the database refuses a batch, write its traces one by one. If it is
        unavailable, finished traces stay pending. With `last`, try even if the breaker is open."""
        size = BATCH
        while batch := self._waiting[:size]:
            try:
                with nullcontext() if last else self._breaker.calling(_blame):
                    await self._write(batch)
            except (CircuitOpen, *_AWAY):  # running traces are serialized again anyway
                self._waiting = [one for one in self._waiting if one[1].summary.status != "running"]
                return
            except Exception as error:
                if len(batch) > 1:
                    size = 1
                    continue
                log.warning("the trace %s could not be written: %s", batch[0][0].id, error)
            del self._waiting[: len(batch)]

    async def _write(self, batch: Sequence[_Serialized]) -> None:
        stored = {source.id for source, _ in batch if source.stored}
        made_by = self._serializer.made_by_key, self._serializer.made_by
        async with asyncio.timeout(WRITE_TIMEOUT):
            await self._traces.write([one for _, one in batch], self._clock(), stored, made_by)
        for source, _ in batch:
            source.stored = True

    async def forget(self, user: str, places: Collection[str] = ()) -> None:
        """Drop the recordings of an erased person, and those of the places where they wrote."""
        self._running = {id: one for id, one in self._running.items() if not one.belongs_to(user, places)}
        async with self._lock:  # a write in progress reaches the database first and is erased there
            self._ended = [one for one in self._ended if not one.belongs_to(user, places)]
            self._waiting = [one for one in self._waiting if not one[0].belongs_to(user, places)]

    async def forget_rows(self, ids: Collection[str]) -> None:
        """Write the finished traces, so that `Traces.forget` can empty them. Of those that are running or
        cannot be written now, empty the ones that show any of these rows."""
        for one in self._running.values():
            one.forgotten.update(ids)
        await self.flush()
        async with self._lock:
            for one in self._ended:
                one.forgotten.update(ids)
            self._waiting = [(source, one.without(set(ids))) for source, one in self._waiting]

    async def close(self) -> None:
        """Write all finished traces and close the listener. Traces that are not written within
        `FLUSH_TIMEOUT` are dropped."""
        self._closing = True
        last = asyncio.create_task(self._flush(last=True))
        await asyncio.wait([last], timeout=FLUSH_TIMEOUT)
        tasks = [last, *self._flushes, *([self._writer] if self._writer else [])]
        for task in tasks:
            task.cancel()
        await asyncio.wait([asyncio.gather(*tasks, return_exceptions=True)], timeout=FLUSH_TIMEOUT)
        if self._waiting:
            log.warning("%d traces could not be written and are dropped", len(self._waiting))
        if self._listener:
            try:
                await asyncio.to_thread(self._listener.close)
            except Exception as error:
                log.warning("the last traces could not be sent on: %s", str(error) or type(error).__name__)


_AWAY = StoreUnavailable, TimeoutError


def _blame(error: Exception) -> str | None:
    return (str(error) or f"no answer within {WRITE_TIMEOUT:g} s") if isinstance(error, _AWAY) else None


def _host() -> dict[str, Any]:
    """Return the ids of the program's current OpenTelemetry span, if there is one. The turn's spans join that
    span's trace."""
    opentelemetry = sys.modules.get("opentelemetry.trace")
    here = opentelemetry.get_current_span().get_span_context() if opentelemetry else None
    if here is None or not here.is_valid:
        return {}
    return {"host": {"trace": f"{here.trace_id:032x}", "span": f"{here.span_id:016x}"}}
