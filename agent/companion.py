"""The public API. Surfaces and programs call it.

async with Companion.open() as pet:
    reply = await pet.respond("I broke my shoulder", user="mickael")

Talking is here; the rest is grouped: `pet.memories`, `pet.tasks`, `pet.documents`, `pet.people`,
`pet.conversations`, `pet.traces`, `pet.admin`. Every method that reads takes a user, and a place where the
conversation is not private. Errors are those of `agent.errors`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING

from agent.background.scheduler import Schedule
from agent.services.arguments import turn_request
from agent.settings import Settings
from agent.turn.persona import read_persona
from agent.turn.streaming import ReplyStream
from agent.types import Reply, TurnRequest
from agent.types.arguments import Content, Importance, Limit, MemoryId, Query, Subjects, Ttl, Type, Where
from agent.types.client import ClientTurn
from agent.wiring.components import Clock, Components, open_components, utc_now
from agent.wiring.runtime import Runtime, open_runtime
from agent.wiring.services import build_services
from memory.errors import MemoryFault
from memory.records import DEFAULT_IMPORTANCE, Decision, Hit, Role

if TYPE_CHECKING:
    from agents.models.interface import Model


class Companion:
    """Made by `Companion.open`."""

    def __init__(self, components: Components) -> None:
        self.components = components
        services = build_services(components)
        self.memories = services.memories
        self.tasks = services.tasks
        self.documents = services.documents
        self.people = services.people
        self.conversations = services.conversations
        self.traces = components.traces
        self.admin = services.admin
        self.reminders = services.reminders
        """Surfaces register here whom they can reach; due tasks are then announced."""
        self._runtime: Runtime | None = None
        self._runtime_lock = asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        settings: Settings | None = None,
        *,
        clock: Clock = utc_now,
        model: "Model | None" = None,
        upkeep_model: "Model | None" = None,
        upkeep: bool = True,
        surface: str = "python",
    ) -> AsyncIterator["Companion"]:
        """Open the database; the index and the model's library are opened when they are first needed.

        `model` answers instead of the one the settings name; then a model consolidates conversations only
        where `upkeep_model` names one, which may be the same. Without `upkeep` no periodic job runs: for
        commands that look at something and end. `surface` is where people meet the companion, for traces.
        """
        settings = settings or Settings.load()
        read_persona(settings.persona)  # report a bad one now and not at the first message
        async with AsyncExitStack() as closing:
            components = await closing.enter_async_context(
                open_components(settings, clock, model, upkeep_model, surface)
            )
            pet = cls(components)
            closing.push_async_callback(pet._stop)
            if upkeep:
                schedule = Schedule(
                    pet.admin,
                    pet.reminders,
                    components.figures,
                    pet.people.erasure,
                    pet._wake_worker,
                    settings.purge_minutes,
                )
                await closing.enter_async_context(schedule.running())
            await pet._purge_undo()
            yield pet

    async def _purge_undo(self) -> None:
        """Delete what was forgotten and can no longer be brought back. A database that cannot be reached is
        reported by whatever needs it first."""
        with suppress(MemoryFault):
            await self.admin.purge_undo()

    @property
    def settings(self) -> Settings:
        return self.components.settings

    @property
    def clock(self) -> Clock:
        return self.components.clock

    async def respond(
        self,
        text: str,
        *,
        user: str | None,
        place: Where = None,
        conversation: str | None = None,
        author: str | None = None,
        instructions: str = "",
        earlier: Sequence[tuple[Role, str]] = (),
        origins: Sequence[str] = (),
        client: ClientTurn | None = None,
        settle: bool = False,
    ) -> Reply:
        """One turn. The reply is durable when it returns; with `settle` the answer's memories are too.

        A program that speaks for a person may add `instructions` of its own and, as (role, text), the
        `earlier` messages of the conversation: the model sees those where the transcript has none. `origins`
        are the ids that a chat platform gave to the message, for when it is deleted there. `client` is what a
        client of a chat API sends beside the message; its history then is the conversation.
        """
        return await self._take_turn(
            turn_request(
                *(text, user, place, conversation, author, instructions, earlier, origins, client),
                now=self.clock(),
            ),
            settle=settle,
        )

    def stream(
        self,
        text: str,
        *,
        user: str | None,
        place: Where = None,
        conversation: str | None = None,
        author: str | None = None,
        instructions: str = "",
        earlier: Sequence[tuple[Role, str]] = (),
        origins: Sequence[str] = (),
        client: ClientTurn | None = None,
        settle: bool = False,
    ) -> ReplyStream:
        """The same, with the text as it is generated: `async for piece in pet.stream(…)`; the whole `Reply`
        is in the stream's `reply` afterwards."""
        request = turn_request(
            *(text, user, place, conversation, author, instructions, earlier, origins, client),
            now=self.clock(),
        )
        return ReplyStream(lambda on_text: self._take_turn(request, on_text, settle=settle))

    async def _take_turn(
        self, request: TurnRequest, on_text: Callable[[str], None] | None = None, *, settle: bool
    ) -> Reply:
        runtime = await self.runtime()
        from agent.turn.turn import take_turn

        await self.people.erasure.finished(request.user)
        return await take_turn(runtime.turn, request, on_text, settle=settle)

    async def remember(
        self,
        content: Content,
        *,
        user: str,
        subjects: Subjects = (),
        ttl: Ttl = None,
        type: Type = "fact",
        importance: Importance = DEFAULT_IMPORTANCE,
        replaces: MemoryId | None = None,
        place: Where = None,
        said_at: datetime | None = None,
        everybody: bool = False,
        author: str | None = None,
    ) -> Decision:
        """`pet.memories.remember`."""
        return await self.memories.remember(
            content,
            user=user,
            subjects=subjects,
            ttl=ttl,
            type=type,
            importance=importance,
            replaces=replaces,
            place=place,
            said_at=said_at,
            everybody=everybody,
            author=author,
        )

    async def search_memories(
        self,
        query: Query,
        *,
        user: str,
        place: Where = None,
        limit: Limit = 10,
        subjects: Subjects = (),
        author: str = "",
    ) -> list[Hit]:
        """`pet.memories.search`."""
        return await self.memories.search(
            query, user=user, place=place, limit=limit, subjects=subjects, author=author
        )

    async def settle(self, within: float | None = None, *, hurry: bool = True) -> bool:
        """Wait until the background work that is due has been done, and with `hurry` what waits for
        conversations to go quiet, at most `within` seconds; then it goes on in the background. Returns
        whether it is done."""
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
        """What a turn needs, loaded when first asked for; a surface may ask early to save the first person
        the wait. Raises SettingsError."""
        async with self._runtime_lock:
            if self._runtime is None:
                self._runtime = await open_runtime(self.components, self.reminders.reaches)
            return self._runtime

    async def _wake_worker(self) -> None:
        (await self.runtime()).worker.wake()

    async def _stop(self) -> None:
        if self._runtime is not None:
            await self._runtime.worker.stop()
