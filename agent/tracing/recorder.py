"""From the running turn to the record: in the background, bounded, and never in the turn's way.

A turn that takes longer than a moment is written while it goes on, and again as it goes on longer, so that
one that hangs or is killed can be seen. Most are written once, some at a time, when they have ended.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol
from uuid import uuid4

from agent.errors import ModelError
from agent.tracing.serialization import Subject, Writing
from agent.tracing.store import Traces
from agent.tracing.trace import TURN, Summary
from agent.types import Incoming, Reply
from memory.audience import Place
from memory.errors import StoreUnavailable
from memory.spans import Recording, Span, recording, unrecorded
from memory.sql.jobs import Work

log = logging.getLogger("hachi.traces")

PAUSE = 0.2
"""Seconds in which what ends is gathered and written together."""
GOES_ON = 2.0
"""Seconds after which what still goes on is written anew, where something has happened in it; then twice as
many, and so on."""
MOST_WAITING = 1_000
"""Traces that wait to be written; beyond these the oldest are let go."""
LOT = 50
"""Traces in one transaction: a turn that wants to write waits for no more."""
WRITING = 10.0
"""Seconds that one lot may take."""
AWAY = 5.0
"""Seconds after which a store that was out of reach is tried again; what has ended waits meanwhile."""
PATIENCE = 2.0
"""Seconds that whoever wants everything written waits for it; then it goes on without them."""

Written = tuple[Summary, bytes]
CLOSING = 10.0
"""Seconds that a listener may take to send what it still has."""


class Listener(Protocol):
    """Who else is told of each trace that has ended, as it is written: not on the loop, and with nobody
    waiting. What it raises is logged."""

    def __call__(self, summary: Summary, body: bytes) -> None: ...

    def close(self) -> None:
        """Send what is left; called once."""


@dataclass(slots=True)
class _Recorded:
    """One recording, and how far it is written."""

    recording: Recording
    subject: Subject
    due: float
    """When it is to be written next, while it goes on; on the clock of `time.monotonic`."""
    pause: float
    """Seconds until it is looked at again after that."""
    changes: int = -1
    """How much of it was written last."""
    known: bool = False
    """It is in the record."""

    def worth_keeping(self) -> bool:
        """Every turn is, and work in which something happened."""
        root = self.recording.root
        return self.subject.kind == TURN or bool(root.spans or root.error)

    def is_of(self, user: str, places: Collection[str]) -> bool:
        inside = any(f"{self.subject.place}/".startswith(f"{place}/") for place in places)
        return self.subject.user == user or (bool(self.subject.place) and inside)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A trace as it is to be written."""

    written: Written
    of: _Recorded
    ended: bool


class Recorder:
    """Opens with the first turn and is closed with the companion."""

    def __init__(
        self,
        traces: Traces,
        writing: Writing,
        clock: Callable[[], datetime],
        listeners: Sequence[Listener] = (),
        *,
        on: bool = True,
    ) -> None:
        self._on = on
        self._traces = traces
        self._writing = writing
        self._clock = clock
        self._listeners = listeners
        self._going_on: dict[str, _Recorded] = {}
        self._ended: deque[_Recorded] = deque()
        self._ready: deque[_Ready] = deque()
        """What has ended and could not be written yet."""
        self._woken = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None
        self._flushing: set[asyncio.Task[None]] = set()
        self._one_at_a_time = asyncio.Lock()
        self._let_go = 0
        self._closing = False
        self._away_until = 0.0
        self.last: Recording | None = None
        """What ended last, for who asks at once."""

    @contextmanager
    def turn(self, incoming: Incoming, model: str, id: str | None = None) -> Iterator["Turning"]:
        """A turn. Whatever it raises is noted and goes on."""
        subject = Subject(
            kind=TURN,
            started_at=self._clock(),
            user=incoming.user,
            place=key_of(incoming.place),
            conversation=incoming.conversation_id,
            model=model,
            said=incoming.text,
        )
        heard = {
            "text": incoming.text,
            "author": incoming.author,
            "conversation": incoming.conversation,
            "sent_at": incoming.sent_at,
            "instructions": incoming.instructions,
            "earlier": incoming.earlier,
        }
        root = Span(TURN, data={"incoming": heard})
        recorded = Recording(id or f"trace_{uuid4().hex}", root)
        with self._recorded(recorded, subject):
            try:
                yield Turning(recorded, subject)
            except ModelError as error:
                error.trace_id = recorded.id
                log.error("%s: %s", recorded.id, error)
                raise

    @contextmanager
    def work(self, piece: Work) -> Iterator[None]:
        """A piece of work after a turn; nothing is kept of one in which nothing happened."""
        subject = Subject(
            kind=piece.kind,
            started_at=self._clock(),
            user=piece.user_id,
            place=key_of(Place(tuple(piece.payload.get("place", ())))),
            conversation=piece.payload.get("conversation", ""),
            turn_id=piece.payload.get("trace"),
        )
        root = Span(piece.kind, data={"tries": piece.attempts})
        with self._recorded(Recording(f"trace_{uuid4().hex}", root), subject):
            yield

    @contextmanager
    def _recorded(self, recorded: Recording, subject: Subject) -> Iterator[None]:
        if not self._on:
            with unrecorded():
                yield
            return
        one = _Recorded(recorded, subject, due=time.monotonic() + PAUSE / 2, pause=GOES_ON)
        self._going_on[recorded.id] = one
        self._wake()
        try:
            with recording(recorded):
                yield
        finally:
            wanted = self._going_on.pop(recorded.id, None) is not None
            if wanted and one.worth_keeping():
                self._ended.append(one)
                self.last = recorded
            self._keep_bounds()
            self._woken.set()

    def _keep_bounds(self) -> None:
        while len(self._ended) + len(self._ready) > MOST_WAITING:
            (self._ready or self._ended).popleft()
            self._let_go += 1

    def _wake(self) -> None:
        self._woken.set()
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_on(), name="hachi traces")

    async def _write_on(self) -> None:
        """While anything goes on or waits."""
        while not self._closing and (self._ended or self._going_on or self._ready):
            self._woken.clear()
            await asyncio.sleep(PAUSE)
            await self._flush()
            if not self._ended:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._until_due()):  # `wait_for` may lose a cancellation
                        await self._woken.wait()

    def _until_due(self) -> float:
        """Seconds until there is something to do, be it that nothing wakes us."""
        dues = [one.due for one in self._going_on.values()]
        if self._ready:
            dues.append(self._away_until)
        return max(0.0, min(dues, default=time.monotonic()) - time.monotonic())

    async def flush(self) -> None:
        """Have everything written that has ended, and what goes on as far as it has come. Returns after
        `PATIENCE` in any case, and raises nothing: what could not be written yet is tried again."""
        await asyncio.wait([self._flushed()], timeout=PATIENCE)

    def _flushed(self) -> asyncio.Task[None]:
        """On its own: whoever waits for it may go away."""
        task = asyncio.create_task(self._flush())
        self._flushing.add(task)
        task.add_done_callback(self._flushing.discard)
        return task

    async def _flush(self, *, last: bool = False) -> None:
        async with self._one_at_a_time:
            ended = list(self._ended)
            self._ended.clear()
            live = self._live()
            if ended or live:
                self._ready += await asyncio.to_thread(self._rendered, ended, live)
            if last or time.monotonic() >= self._away_until:
                await self._write_ready()
            self._keep_bounds()
            if self._let_go:
                log.warning("%d traces came faster than they could be written, and are gone", self._let_go)
                self._let_go = 0

    async def _write_ready(self) -> None:
        """Some at a time. What has ended stays where it is until it is written."""
        while self._ready:
            lot = list(self._ready)[:LOT]
            why: Exception | None = None
            try:
                await self._write(lot)
            except (StoreUnavailable, TimeoutError) as error:
                why = error
            except Exception:
                await self._one_by_one(lot)
            for ready in lot:
                if self._ready and self._ready[0] is ready:
                    self._ready.popleft()
            if why is not None:
                self._away(why, lot)
                return
            self._away_until = 0.0

    async def _write(self, lot: Sequence[_Ready]) -> None:
        known = {ready.written[0].id for ready in lot if ready.of.known}
        async with asyncio.timeout(WRITING):
            made_by = self._writing.maker, self._writing.made_by
            await self._traces.write([ready.written for ready in lot], self._clock(), known, made_by)
        for ready in lot:
            ready.of.known = True

    async def _one_by_one(self, lot: Sequence[_Ready]) -> None:
        """Where one of them cannot be written, the others can."""
        for ready in lot:
            try:
                await self._write([ready])
            except Exception as error:
                log.warning("the trace %s could not be written: %s", ready.written[0].id, error)

    def _away(self, why: Exception, lot: Sequence[_Ready]) -> None:
        """Those that have ended are kept for the next try; the others are rendered anew then."""
        if not self._away_until:
            log.warning("traces cannot be written now: %s", str(why) or f"no answer within {WRITING:g} s")
        self._away_until = time.monotonic() + AWAY
        kept = [ready for ready in (*lot, *self._ready) if ready.ended]
        self._ready.clear()
        self._ready.extend(kept)

    def _live(self) -> list[tuple[_Recorded, Recording, Subject]]:
        """Copies of what goes on, where it is time and something has happened since it was written last."""
        copies, now = [], time.monotonic()
        for one in self._going_on.values():
            if one.due > now:
                continue
            one.due = now + one.pause
            if one.changes != one.recording.changes and one.worth_keeping():
                one.changes = one.recording.changes
                one.pause *= 2
                copies.append((one, one.recording.as_it_is(), replace(one.subject)))
        return copies

    def _rendered(
        self, ended: Sequence[_Recorded], live: Sequence[tuple[_Recorded, Recording, Subject]]
    ) -> list[_Ready]:
        """In a thread, so that turns go on meanwhile. What has ended comes first, as it began first."""
        found = []
        for one in ended:
            if written := self._render(one.recording, one.subject):
                found.append(_Ready(written, one, ended=True))
                self._tell(*written)
        for one, recorded, subject in live:
            if written := self._render(recorded, subject):
                found.append(_Ready(written, one, ended=False))
        return found

    def _render(self, recorded: Recording, subject: Subject) -> Written | None:
        try:
            return self._writing.written(recorded, subject)
        except Exception as error:
            log.warning("the trace %s could not be written: %r", recorded.id, error)
            return None

    def _tell(self, summary: Summary, body: bytes) -> None:
        for listener in self._listeners:
            try:
                listener(summary, body)
            except Exception as error:
                log.warning("a trace could not be sent on: %s", error)

    async def forget(self, user: str, places: Collection[str] = ()) -> None:
        """Let go of what is being recorded of a person who is erased, and in the places where they spoke,
        written or not."""
        for id, one in list(self._going_on.items()):
            if one.is_of(user, places):
                del self._going_on[id]
        async with self._one_at_a_time:  # what was just being written is in the record then, and found there
            ended = [one for one in self._ended if not one.is_of(user, places)]
            self._ended.clear()
            self._ended.extend(ended)
            ready = [one for one in self._ready if not one.of.is_of(user, places)]
            self._ready.clear()
            self._ready.extend(ready)
        if self.last is not None and self.last.id not in self._going_on:
            self.last = None

    async def close(self) -> None:
        """Everything that has ended is written, if it can be."""
        self._closing = True
        await asyncio.gather(*self._flushing, return_exceptions=True)
        await self._flush(last=True)
        if self._ready:
            log.warning("%d traces could not be written, and are gone", len(self._ready))
        if self._writer is not None:
            self._writer.cancel()
            with suppress(asyncio.CancelledError):
                await self._writer
        for listener in self._listeners:
            try:
                await asyncio.wait_for(asyncio.to_thread(listener.close), CLOSING)
            except Exception as error:
                log.warning("the last traces could not be sent on: %s", error or type(error).__name__)


class Turning:
    """A turn that is being recorded."""

    def __init__(self, recorded: Recording, subject: Subject) -> None:
        self.id = recorded.id
        self._recorded = recorded
        self._subject = subject

    def heard(self, message_id: str | None) -> None:
        self._subject.message_id = message_id

    def answered(self, reply: Reply) -> None:
        self._subject.reply = reply.message
        self._note(reply={"message": reply.message, "message_id": reply.message_id, "calls": reply.calls})

    def _note(self, **data: Any) -> None:
        self._recorded.root.data.update(data)


def key_of(place: Place) -> str:
    return "" if place.private else place.key
