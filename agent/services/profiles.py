"""Profiles: what people said about themselves, and how they want to be answered."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

from agent.errors import BadInput
from agent.services.arguments import place_of, user_named
from agent.services.erasure import ErasureService
from agent.types import TurnRequest
from memory.audience import PRIVATE, Audience, Place
from memory.people.profile import UserContext
from memory.people.profile_entries import entry_for
from memory.people.profile_store import ProfileStore
from memory.people.tasks import Tasks
from memory.search.core_facts import core_facts
from memory.sql.memories import MemoryStore
from memory.sql.summaries import ConversationSummaries, owner_of

MODES = ("companion", "study", "work")


@dataclass(frozen=True)
class ProfileService:
    contexts: ProfileStore
    store: MemoryStore
    tasks: Tasks
    conversations: ConversationSummaries
    erasure: ErasureService
    clock: Callable[[], datetime]
    remembers: bool
    """Whether anything is remembered: the setting `memory`."""

    async def get(self, *, user: str, place: Place | str | None = None) -> UserContext:
        named, where = user_named(user), place_of(place)
        facts = await core_facts(self.store, named, Audience.of(named, where), self.clock())
        tasks = await self.tasks.list(named, where)
        known = await self.contexts.view(named, where, self.clock())
        return replace(known, long_term_facts=tuple(facts), open_tasks=tuple(tasks))

    async def set(
        self, field: str, value: str | bool | None, *, user: str, place: Place | str | None = None
    ) -> UserContext:
        named, where = user_named(user), place_of(place)
        await self.erasure.finished(named)
        text = "" if value is None else str(value)
        if field.strip().lower() == "mode":
            await self._set_mode(text.strip().lower(), named, where)
        else:
            try:
                entry = entry_for(field, text, self.clock())
            except ValueError as error:
                raise BadInput(str(error)) from error
            await self.contexts.merge(named, where, [entry], self.clock())
        return await self.get(user=named, place=where)

    async def zone(self, *, user: str) -> tzinfo | None:
        """Return the person's time zone; None while it is unknown."""
        known = await self.contexts.view(user_named(user), PRIVATE, self.clock())
        return known.zone if known.profile.timezone else None

    async def note_zone(self, zone: str, *, user: str) -> None:
        """Take the time zone that a chat platform or a browser tells of a person, as long as none is known.
        One that cannot be read is left out."""
        if zone and self.remembers and await self.zone(user=user) is None:
            with suppress(BadInput):
                await self.set("timezone", zone, user=user)

    async def _set_mode(self, mode: str, user: str, place: Place) -> None:
        if mode and mode not in MODES:
            raise BadInput(f"there is no mode {mode!r}; use {', '.join(MODES)}, or nothing to unset it")
        conversation = TurnRequest("", user, self.clock(), place).conversation_id
        await self.conversations.set_mode(conversation, owner_of(user, place), mode or None, self.clock())
