"""The public API. Surfaces and programs call it.

async with Companion.open() as pet:
    reply = await pet.respond("I broke my shoulder", user="mickael")

Turns are here; the other operations are grouped: `pet.memories`, `pet.tasks`, `pet.documents`, `pet.people`,
`pet.conversations`, `pet.check_ins`, `pet.sessions`, `pet.traces`, `pet.admin`. Every method that reads takes
a user, and a place unless the conversation is private. Errors are those of `agent.errors`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, overload

from typing_extensions import Unpack

from agent.background.check_ins import CheckInService
from agent.background.confirmed_calls import ConfirmedCalls
from agent.background.periodic_jobs import Schedule
from agent.background.reminders import Reminders
from agent.services.admin import AdminService
from agent.services.conversations import ConversationService
from agent.services.documents import DocumentService
from agent.services.forgetting import ForgetService
from agent.services.memories import MemoryService
from agent.services.people import PeopleService
from agent.services.sessions import SessionService
from agent.services.tasks import TaskService
from agent.settings import Settings
from agent.turn.context.persona import read_persona
from agent.turn.extensions import extensions, tools_named
from agent.turn.mcp_servers.file import read_mcp_file
from agent.turn.output.reply_stream import OnEvent, ReplyStream
from agent.types import Reply, TurnRequest
from agent.types.arguments import Limit, Seconds, Text, User, place_of
from agent.types.checks import checks_arguments
from agent.types.options import Clock, OpenOptions, TurnOptions
from agent.wiring.components import Components, open_components
from agent.wiring.runtime import Runtime, open_runtime
from memory.errors import MemoryFault

if TYPE_CHECKING:
    from agent.background.consolidation.learn_imported import Learning, LearningCost, LearningResult
else:  # takes seconds to import
    LearningResult = LearningCost = Any

T = TypeVar("T")
UNASKED_SECONDS = 180.0
"""Seconds that a turn without a message may take."""


@checks_arguments
class Companion:
    """A companion: it answers messages, remembers, and forgets. Open it with `Companion.open`, or with
    `start` and `close`. Use it only in the event loop that opened it; elsewhere, or once closed, it raises
    NotOpen."""

    def __init__(self, components: Components) -> None:
        c = self.components = components
        forgetting = ForgetService(c)
        self.memories = MemoryService(c, forgetting)
        self.remember, self.search_memories = self.memories.remember, self.memories.search
        self.tasks = TaskService(c, forgetting)
        self.documents = DocumentService(c)
        self.people = PeopleService(c, self.memories)
        self.conversations = ConversationService(c, forgetting)
        self.sessions = SessionService(c.database)
        self.traces = c.traces
        self.admin = AdminService(c, forgetting)
        self.reminders = Reminders(c)
        """Surfaces register senders here; reminders of due tasks then go to the people whom they reach."""
        self.check_ins = CheckInService(c, self._take_unasked_turn)
        """Surfaces register senders here; check-ins then go to people who want them."""
        self.calls = ConfirmedCalls(c, self._take_unasked_turn)
        """Tool calls that wait for a person to confirm them with a button, and then run."""
        self._runtime: Runtime | None = None
        self._runtime_lock = asyncio.Lock()
        self._closing = AsyncExitStack()

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings | None = None, **options: Unpack[OpenOptions]
    ) -> AsyncIterator["Companion"]:
        """Start a companion, and close it at the end of the block."""
        pet = await cls.start(settings, **options)
        try:
            yield pet
        finally:
            await pet.close()

    @classmethod
    async def start(cls, settings: Settings | None = None, **options: Unpack[OpenOptions]) -> "Companion":
        """Open the database; the index and the model's library load on first use. Unset settings come from
        the environment. Raises SettingsError, BadInput or MemoryFault."""
        settings = settings or Settings.load()
        read_persona(settings.persona)  # report a bad one now and not at the first message
        added = extensions(
            [*tools_named(settings.tools), *options.get("tools", ())],
            options.get("only_tools"),
            options.get("guardrails", ()),
            options.get("hooks"),
            read_mcp_file(settings.mcp),
        )
        async with AsyncExitStack() as closing:
            closing.push_async_callback(added.close)
            components = await open_components(closing, settings, options, added)
            pet = cls(components)
            closing.push_async_callback(pet._stop)
            if options.get("periodic_jobs", options.get("upkeep", True)):
                schedule = Schedule(
                    components, pet.admin, pet.reminders, pet.check_ins, pet.calls, pet._wake_worker
                )
                schedule.start(closing)
            with suppress(MemoryFault):  # the next operation reports a database that is away
                await pet.admin.purge_forgotten()
            pet._closing = closing.pop_all()
        return pet

    async def close(self) -> None:
        """Finish running work and close the databases. A second call does nothing."""
        if not self.components.database.closed:
            self.components.database.check_usable()
        closing, self._closing = self._closing, AsyncExitStack()
        await closing.aclose()
        self.components.database.closed = True

    @property
    def settings(self) -> Settings:
        return self.components.settings

    @property
    def clock(self) -> Clock:
        return self.components.clock

    @overload
    async def respond(
        self, text: Text, *, user: User | None, answer: type[T], **options: Unpack[TurnOptions]
    ) -> Reply[T]: ...
    @overload
    async def respond(
        self, text: Text, *, user: User | None, answer: None = None, **options: Unpack[TurnOptions]
    ) -> Reply: ...
    async def respond(
        self,
        text: Text,
        *,
        user: User | None,
        answer: type[Any] | None = None,
        **options: Unpack[TurnOptions],
    ) -> Reply[Any]:
        """Answer a message: one turn. The reply is stored when this returns. `TurnOptions` describes the
        other arguments. With `answer`, a pydantic model or a dataclass, the reply's `value` is one."""
        if answer is None:
            return await self._take_turn(text, user, options)
        from agent.turn.output.client_form import value_of, with_form

        options["client"] = with_form(answer, options.get("client"))
        reply = await self._take_turn(text, user, options)
        return replace(reply, value=value_of(answer, reply))

    def stream(self, text: Text, *, user: User | None, **options: Unpack[TurnOptions]) -> ReplyStream:
        """Stream the reply as it is generated: `async for piece in pet.stream(…)`. Afterwards the stream's
        `reply` is the whole `Reply`."""
        return ReplyStream(lambda on_event: self._take_turn(text, user, options, on_event))

    async def _take_turn(
        self, text: str, user: str | None, options: TurnOptions, on_event: OnEvent | None = None
    ) -> Reply:
        deps = (await self.runtime()).turn
        from agent.turn.turn import take_turn, with_rights

        request = TurnRequest(
            text,
            user,
            self.clock(),
            place_of(options.get("place")),
            options.get("conversation"),
            options.get("author"),
            options.get("instructions", ""),
            tuple(options.get("origins", ())),
            options.get("client"),
            confirm=options.get("confirm"),
        )
        await self.components.erasure.finished(request.user)
        if request.user and not await self.people.places.keeps(request.user, request.place):
            name = await deps.parts.transcript.speakers.label(request.speaker, request.user, request.place)
            request = replace(request, user=None, author=name, unkept=True)
        elif self.settings.memory:
            links, reads = self.components.links, options.get("reads")
            request = await with_rights(links, request, reads, on=self.settings.read_places)
        asked, most = options.get("model"), options.get("max_turns")
        if asked or most:
            changed: dict[str, Any] = {"max_turns": most or deps.settings.max_turns}
            if isinstance(asked, str):
                changed["model"] = asked
            settings = deps.settings.model_copy(update=changed)
            model = await self.components.models.named(asked, settings) if asked else deps.model
            deps = replace(deps, settings=settings, model=model)
        return await take_turn(
            deps,
            request,
            on_event,
            settle=options.get("settle", False),
            ending=options.get("ending"),
            within=options.get("timeout"),
        )

    async def _take_unasked_turn(self, request: TurnRequest) -> Reply:
        """Take a turn without a message."""
        deps = (await self.runtime()).turn
        from agent.turn.turn import take_turn

        await self.components.erasure.finished(request.user)
        return await take_turn(deps, request, None, settle=False, ending=None, within=UNASKED_SECONDS)

    async def preview_learn(self, *, user: User) -> LearningCost:
        """Estimate what `learn` would read and cost. Raises BadInput if no model consolidates."""
        return await (await self._learning()).preview(user)

    async def learn(
        self, *, user: User, calls: Limit, progress: Callable[[int], None] | None = None
    ) -> LearningResult:
        """Consolidate the user's imported private conversations with the model, the oldest first, in at most
        `calls` model calls. They do not count against the daily limit of consolidation. `progress` gets the
        number of messages read. What was learned stays; another call continues. Raises BadInput and
        ModelError."""
        return await (await self._learning()).run(user, calls, progress)

    async def _learning(self) -> "Learning":
        consolidation = (await self.runtime()).worker.consolidation
        from agent.background.consolidation.learn_imported import Learning

        return Learning(consolidation)

    async def settle(self, within: Seconds | None = None, *, hurry: bool = True) -> bool:
        """Wait until the due background work is done, at most `within` seconds; then it continues in the
        background. `hurry` includes consolidations that wait for conversations to go quiet. Returns whether
        all is done."""
        worker = (await self.runtime()).worker
        settling = asyncio.ensure_future(worker.settle(hurry=hurry))
        done, _ = await asyncio.wait([settling], timeout=within)
        if not done:
            settling.cancel()
            return False
        settling.result()
        await self.components.recorder.flush()
        return True

    async def runtime(self) -> Runtime:
        """Load what a turn needs, on first use. A surface may call this early, so that the first person does
        not wait. Raises SettingsError."""
        async with self._runtime_lock:
            self.components.database.check_usable()
            if self._runtime is None:
                self._runtime = await open_runtime(self.components, self.reminders.reaches)
            return self._runtime

    async def _wake_worker(self) -> None:
        (await self.runtime()).worker.wake(poll=True)

    async def _stop(self) -> None:
        await self.reminders.stop()
        if self._runtime is not None:
            await self._runtime.worker.stop()
