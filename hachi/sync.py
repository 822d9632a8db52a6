"""The companion for programs without asyncio: each call waits for its result.

    from hachi.sync import Companion

    with Companion.open() as pet:
        print(pet.respond("I broke my shoulder", user="mickael").message)

It runs an event loop in its own thread; any thread may call. Groups and methods are those of
`hachi.Companion`; `run` awaits anything else of it.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from typing_extensions import Unpack

from agent import companion
from agent.background.check_ins import CheckInService
from agent.services.admin import AdminService
from agent.services.conversations import ConversationService
from agent.services.documents import DocumentService
from agent.services.memories import MemoryService
from agent.services.people import PeopleService
from agent.services.tasks import TaskService
from agent.settings import Settings
from agent.tracing.store.traces import Traces
from agent.turn.output.reply_stream import ReplyStream
from agent.types import Reply
from agent.types.options import OpenOptions, TurnOptions
from memory.errors import NotOpen

G = TypeVar("G", covariant=True)
T = TypeVar("T")
P = ParamSpec("P")


def _waits(
    method: Callable[Concatenate[G, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["_Group[G]", P], T]:
    """Turn an async method into one that waits for its result."""

    def call(self: "_Group[G]", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(method(self.inner, *args, **kwargs))

    call.__doc__ = method.__doc__
    return call


class _Group(Generic[G]):
    def __init__(self, inner: G, run: "Run") -> None:
        self.inner, self.run = inner, run


class Run:
    """Awaits coroutines in the event loop of a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="hachi", daemon=True)
        self._thread.start()

    def __call__(self, awaited: Coroutine[Any, Any, T]) -> T:
        if threading.current_thread() is self._thread:
            awaited.close()
            raise NotOpen(
                "this runs on the companion's own event loop, which the call would wait for; use a sync tool"
            )
        try:
            future = asyncio.run_coroutine_threadsafe(awaited, self.loop)
        except RuntimeError:
            awaited.close()
            raise NotOpen("the companion is closed; open another one") from None
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C interrupts only the waiting thread
            raise

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class _Memories(_Group[MemoryService]):
    search = _waits(MemoryService.search)
    excerpts = _waits(MemoryService.excerpts)
    newest = _waits(MemoryService.newest)
    remember = _waits(MemoryService.remember)
    remember_many = _waits(MemoryService.remember_many)
    get = _waits(MemoryService.get)
    update = _waits(MemoryService.update)
    forget = _waits(MemoryService.forget)
    preview_forget = _waits(MemoryService.preview_forget)
    find_to_forget = _waits(MemoryService.find_to_forget)
    forget_confirmed = _waits(MemoryService.forget_confirmed)
    undo_forget = _waits(MemoryService.undo_forget)
    make_private = _waits(MemoryService.make_private)
    history = _waits(MemoryService.history)
    undo = _waits(MemoryService.undo)
    list = _waits(MemoryService.list)
    months = _waits(MemoryService.months)


class _Tasks(_Group[TaskService]):
    update = _waits(TaskService.update)
    forget = _waits(TaskService.forget)
    list = _waits(TaskService.list)


class _CheckIns(_Group[CheckInService]):
    wanted = _waits(CheckInService.wanted)
    want = _waits(CheckInService.want)
    list = _waits(CheckInService.list)


class _Documents(_Group[DocumentService]):
    add_files = _waits(DocumentService.add_files)
    add = _waits(DocumentService.add)
    remove = _waits(DocumentService.remove)
    search = _waits(DocumentService.search)
    list = _waits(DocumentService.list)


class _People(_Group[PeopleService]):
    context = _waits(PeopleService.context)
    set_context = _waits(PeopleService.set_context)
    zone = _waits(PeopleService.zone)
    named = _waits(PeopleService.named)
    alias = _waits(PeopleService.alias)
    aliases = _waits(PeopleService.aliases)
    forget_alias = _waits(PeopleService.forget_alias)
    preview_erase = _waits(PeopleService.preview_erase)
    erase = _waits(PeopleService.erase)


class _Conversations(_Group[ConversationService]):
    messages = _waits(ConversationService.messages)
    message = _waits(ConversationService.message)
    forget = _waits(ConversationService.forget)
    preview_forget = _waits(ConversationService.preview_forget)
    export = _waits(ConversationService.export)
    export_place = _waits(ConversationService.export_place)
    import_ = _waits(ConversationService.import_)
    import_messages = _waits(ConversationService.import_messages)


class _Admin(_Group[AdminService]):
    preview_purge = _waits(AdminService.preview_purge)
    tidy = _waits(AdminService.tidy)
    purge = _waits(AdminService.purge)
    prune_traces = _waits(AdminService.prune_traces)
    reindex = _waits(AdminService.reindex)
    catch_up = _waits(AdminService.catch_up)


class _Traces(_Group[Traces]):
    list = _waits(Traces.list)
    get = _waits(Traces.get)
    get_with_jobs = _waits(Traces.get_with_jobs)


class Companion(_Group[companion.Companion]):
    """Opened by `Companion.open`, or by `start`, and then closed by `close`."""

    def __init__(self, inner: companion.Companion, run: Run) -> None:
        super().__init__(inner, run)
        self.memories = _Memories(inner.memories, run)
        self.remember, self.search_memories = self.memories.remember, self.memories.search
        self.tasks = _Tasks(inner.tasks, run)
        self.check_ins = _CheckIns(inner.check_ins, run)
        self.documents = _Documents(inner.documents, run)
        self.people = _People(inner.people, run)
        self.conversations = _Conversations(inner.conversations, run)
        self.admin = _Admin(inner.admin, run)
        self.traces = _Traces(inner.traces, run)

    @classmethod
    @contextmanager
    def open(cls, settings: Settings | None = None, **options: Unpack[OpenOptions]) -> Iterator["Companion"]:
        """Start a companion, and close it at the end of the block."""
        pet = cls.start(settings, **options)
        try:
            yield pet
        finally:
            pet.close()

    @classmethod
    def start(cls, settings: Settings | None = None, **options: Unpack[OpenOptions]) -> "Companion":
        run = Run()
        try:
            return cls(run(companion.Companion.start(settings, **options)), run)
        except BaseException:
            run.stop()
            raise

    def close(self) -> None:
        """Finish what is under way and close the databases. A second call does nothing."""
        if not self.run.loop.is_closed():
            self.run(self.inner.close())
            self.run.stop()

    settle = _waits(companion.Companion.settle)
    learn = _waits(companion.Companion.learn)
    preview_learn = _waits(companion.Companion.preview_learn)

    @overload
    def respond(
        self, text: str, *, user: str | None, answer: type[T], **options: Unpack[TurnOptions]
    ) -> Reply[T]: ...
    @overload
    def respond(
        self, text: str, *, user: str | None, answer: None = None, **options: Unpack[TurnOptions]
    ) -> Reply: ...
    def respond(
        self, text: str, *, user: str | None, answer: Any = None, **options: Unpack[TurnOptions]
    ) -> Reply[Any]:
        return self.run(self.inner.respond(text, user=user, answer=answer, **options))

    def stream(self, text: str, *, user: str | None, **options: Unpack[TurnOptions]) -> "SyncStream":
        """Stream the text as it is generated: `for piece in pet.stream(…)`; afterwards its `reply` has the
        Reply."""
        return SyncStream(self.inner.stream(text, user=user, **options), self.run)


class SyncStream:
    def __init__(self, stream: ReplyStream, run: Run) -> None:
        self._stream, self._run = stream, run

    def __iter__(self) -> Iterator[str]:
        async def advance() -> str | None:
            return await anext(pieces, None)

        pieces = aiter(self._stream)
        try:
            while (piece := self._run(advance())) is not None:
                yield piece
        finally:
            self._run(self._stream.aclose())

    @property
    def reply(self) -> Reply:
        """The Reply, once the stream has been read to its end."""
        return self._stream.reply
