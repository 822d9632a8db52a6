"""The companion: the one place where everything is wired, opened and closed. Surfaces and programs call it.

async with Companion.open() as pet:
    reply = await pet.respond("I broke my shoulder", user="mickael")
"""

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from agent.archive import Clock, read_persona, utc_now
from agent.record import Record
from agent.settings import Settings
from agent.turn.streaming import ReplyStream
from agent.types import Reply
from memory.audience import Place
from memory.documents import Candidate, Reranker
from memory.errors import IndexUnavailable
from memory.index.embedders import open_embedder
from memory.records import (
    Role,
)
from memory.sql.engine import Database

if TYPE_CHECKING:
    from agents.models.interface import Model

    from agent.models import ChosenModel
    from agent.turn.turn import House

log = logging.getLogger("hachi")


class Companion(Record):
    """Made by `Companion.open`. Every method that reads takes a user, and a place where it is not private;
    faults are those of `agent.errors`."""

    surface = "python"
    _model: "Model | None" = None
    _upkeep_model: "Model | None" = None
    _house: "House | None" = None
    _upkeep: "ChosenModel | None" = None

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
        """Open the record; the index and the model's library follow when they are first needed.

        `model` answers instead of the one the settings name; then a model looks back at what was said only
        where `upkeep_model` names one, which may be the same. Without `upkeep` no background job runs: for
        commands that look at something and end. `surface` is where people meet it, as traces tell it.
        """
        settings = settings or Settings.load()
        read_persona(settings.persona)  # a wrong one is better told now than at the first message
        async with AsyncExitStack() as closing:
            url = settings.database_url.get_secret_value() if settings.database_url else None
            database = await Database.open(url, settings.home)
            closing.push_async_callback(database.close)
            elsewhere = await open_traces(settings)
            if elsewhere is not None:
                closing.push_async_callback(elsewhere.close)
            embedder = await open_embedder(
                settings.chosen_embedder,
                api_key=settings.openai_api_key.get_secret_value() if settings.openai_api_key else None,
                base_url=settings.openai_base_url,
                cache_folder=settings.home,
            )
            closing.push_async_callback(embedder.close)
            pet = cls(settings, clock, database, embedder, elsewhere)
            pet._model, pet._upkeep_model, pet.surface = model, upkeep_model, surface
            closing.push_async_callback(pet.index.close)
            closing.push_async_callback(pet.knowledge_index.close)
            closing.push_async_callback(pet.note_uses)
            closing.push_async_callback(pet._close_house)
            if upkeep:
                from agent.background.scheduler import running

                await closing.enter_async_context(running(pet))
            yield pet

    # Talking.

    async def respond(
        self,
        text: str,
        *,
        user: str | None,
        place: Place | str | None = None,
        conversation: str | None = None,
        author: str | None = None,
        instructions: str = "",
        earlier: Sequence[tuple[Role, str]] = (),
        settle: bool = False,
    ) -> Reply:
        """One turn. The reply is durable when it returns; with `settle` the answer's memories are too.

        A program that speaks for a person may say what it wishes for itself (`instructions`) and, as
        (role, text), what was said `earlier`: that is shown to the model where the transcript has nothing.
        """
        from agent.turn.turn import take_turn

        house = await self.house()
        incoming = self._incoming(text, user, place, conversation, author, instructions, earlier)
        await self._once_erased(incoming.user)
        return await take_turn(house, incoming, settle=settle)

    def stream(
        self,
        text: str,
        *,
        user: str | None,
        place: Place | str | None = None,
        conversation: str | None = None,
        author: str | None = None,
        instructions: str = "",
        earlier: Sequence[tuple[Role, str]] = (),
        settle: bool = False,
    ) -> ReplyStream:
        """The same, with the text as it is generated: `async for piece in pet.stream(…)`; the whole `Reply`
        is in the stream's `reply` afterwards."""
        incoming = self._incoming(text, user, place, conversation, author, instructions, earlier)

        async def turn(on_text: Callable[[str], None]) -> Reply:
            from agent.turn.turn import take_turn

            house = await self.house()
            await self._once_erased(incoming.user)
            return await take_turn(house, incoming, on_text, settle=settle)

        return ReplyStream(turn)

    async def settle(self, within: float | None = None) -> bool:
        """Until the after-turn work that is due has been done; at most `within` seconds, then it goes on in
        the background. Whether it is done."""
        settling = asyncio.ensure_future((await self.house()).aftercare.settle())
        done, _ = await asyncio.wait([settling], timeout=within)
        if not done:
            settling.cancel()
        else:
            settling.result()
            await (await self.house()).recorder.flush()
        return bool(done)

    def chosen_model(self) -> "ChosenModel":
        """The model that answers, made anew: whoever asks closes it."""
        from agent.models import choose_model, given_model

        return given_model(self._model) if self._model else choose_model(self.settings)

    # The runtime, loaded when it is first needed: the Agents SDK takes seconds to import.

    async def house(self) -> "House":
        async with self._house_lock:
            if self._house is None:
                await asyncio.to_thread(importlib.import_module, "agent.turn.turn")
                self._house = self._build_house()
                await self._take_up_work(self._house)
            return self._house

    @cached_property
    def _house_lock(self) -> asyncio.Lock:
        return asyncio.Lock()

    async def _take_up_work(self, house: "House") -> None:
        """Do what an earlier process accepted and did not finish."""
        try:
            await self.index.opened()
        except IndexUnavailable as error:
            log.warning("%s", error)
        else:
            if self.database.sqlite and not self.settings.qdrant_url:
                # Who holds the embedded index is alone at work here: what is claimed, a crash left behind.
                await self.queue.release(self.clock())
        house.aftercare.wake()

    def _build_house(self) -> "House":
        from agent.building import build_house

        house, self._upkeep = build_house(self, self._model, self._upkeep_model, self.surface)
        return house

    def reranker(self) -> Reranker:
        return self._ask_which if self.settings.reranker == "model" else super().reranker()

    async def _ask_which(
        self, query: str, candidates: Sequence[Candidate], limit: int
    ) -> list[tuple[str, float]]:
        """A reranker that asks the model which does the upkeep."""
        house = await self.house()
        from agent.reranker import ModelReranker

        return await ModelReranker(self._upkeep or house.model)(query, candidates, limit)

    async def _close_house(self) -> None:
        if self._house is not None:
            await self._house.aftercare.stop()
            await self._house.recorder.close()
            await self._house.model.close()
            if self._upkeep is not None:
                await self._upkeep.close()


async def open_traces(settings: Settings) -> Database | None:
    """Where traces are kept, if not with everything else."""
    if settings.traces_url is None:
        return None
    return await Database.open(settings.traces_url.get_secret_value(), settings.home, "HACHI_TRACES_URL")
