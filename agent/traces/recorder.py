"""From the running turn to the record: in the background, bounded, and never in the turn's way.

A turn that takes longer than a moment is written when it begins, and again as it goes on, so that one that
hangs or is killed can be seen. Most are written once, some at a time, when they have ended.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any
from uuid import uuid4

from agent.errors import ModelError
from agent.messages import Incoming, Reply
from agent.traces.store import Traces
from agent.traces.trace import TURN, Summary
from agent.traces.writing import Subject, Writing
from memory.audience import Place
from memory.spans import Recording, Span, recording, unrecorded
from memory.work import Work

log = logging.getLogger("hachi.traces")

PAUSE = 0.2
"""Seconds in which what ends is gathered and written together."""
GOES_ON = 2.0
"""Seconds after which what is still going on is written anew, where something has happened in it."""
MOST_WAITING = 1_000
"""Traces that wait to be written; beyond these the oldest are let go."""

Written = tuple[Summary, bytes]
Listener = Callable[[Recording, Subject], None]
"""Told of what has ended, in a thread of its own; what it raises is logged."""


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
        self._going_on: dict[str, tuple[Recording, Subject]] = {}
        self._seen: dict[str, int] = {}
        """Of what goes on: how much of it was written last."""
        self._ended: deque[tuple[Recording, Subject]] = deque()
        self._woken = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()
        self._let_go = 0
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
        self._going_on[recorded.id] = recorded, subject
        self._wake()
        try:
            with recording(recorded):
                yield
        finally:
            wanted = self._going_on.pop(recorded.id, None) is not None
            if wanted and _worth_keeping(recorded, subject):
                self._ended.append((recorded, subject))
                self.last = recorded
            self._seen.pop(recorded.id, None)
            if len(self._ended) > MOST_WAITING:
                self._ended.popleft()
                self._let_go += 1
            self._woken.set()

    def _wake(self) -> None:
        self._woken.set()
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_on(), name="hachi traces")

    async def _write_on(self) -> None:
        """While anything goes on or waits."""
        pause = PAUSE
        while self._ended or self._going_on:
            self._woken.clear()
            await asyncio.sleep(pause)
            await self.flush()
            pause = PAUSE
            if not self._ended:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), GOES_ON)

    async def flush(self) -> None:
        """Write what has ended, and what goes on as far as it has come. Never raises but for being
        cancelled: a trace that cannot be written is let go, and the log says so."""
        async with self._one_at_a_time:
            ended = list(self._ended)
            self._ended.clear()
            written = self._live()
            try:
                written += await asyncio.to_thread(self._rendered, ended) if ended else []
                if written:
                    await self._traces.write(written, self._clock())
            except Exception as error:
                log.warning("%d traces could not be written: %s", len(written), error)
            if self._let_go:
                log.warning("%d traces came faster than they could be written, and are gone", self._let_go)
                self._let_go = 0

    def _live(self) -> list[Written]:
        """What goes on, where something happened since it was written last. Rendered here, as it must not
        change meanwhile."""
        changed = [
            pair
            for pair in self._going_on.values()
            if self._seen.get(pair[0].id) != pair[0].changes and _worth_keeping(*pair)
        ]
        for recorded, _ in changed:
            self._seen[recorded.id] = recorded.changes
        return [written for pair in changed if (written := self._render(*pair))]

    def _rendered(self, ended: Sequence[tuple[Recording, Subject]]) -> list[Written]:
        for recorded, subject in ended:
            for listener in self._listeners:
                try:
                    listener(recorded, subject)
                except Exception as error:
                    log.warning("a trace could not be sent on: %s", error)
        return [written for pair in ended if (written := self._render(*pair))]

    def _render(self, recorded: Recording, subject: Subject) -> Written | None:
        try:
            return self._writing.written(recorded, subject)
        except Exception as error:
            log.warning("the trace %s could not be written: %r", recorded.id, error)
            return None

    async def forget(self, user: str) -> None:
        """Let go of what is being recorded of a person who is erased, written or not."""
        for id, (_, subject) in list(self._going_on.items()):
            if subject.user == user:
                del self._going_on[id]
        kept = [pair for pair in self._ended if pair[1].user != user]
        self._ended.clear()
        self._ended.extend(kept)
        async with self._one_at_a_time:
            pass  # what was just being written is in the record now, where it is found

    async def close(self) -> None:
        await self.flush()
        if self._writer is not None:
            self._writer.cancel()
            with suppress(asyncio.CancelledError):
                await self._writer


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


def _worth_keeping(recorded: Recording, subject: Subject) -> bool:
    """Every turn is, and work in which something happened."""
    return subject.kind == TURN or bool(recorded.root.spans or recorded.root.error)


def key_of(place: Place) -> str:
    return "" if place.private else place.key
