"""People: their profiles, their other names, their places, and erasing them: `pet.people`."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING

from agent.errors import BadInput
from agent.services.memories import MemoryService
from agent.types import TurnRequest
from agent.types.arguments import Name, ShortText, ShortTexts, Text, User, Where, place_of
from agent.types.checks import checks_arguments
from agent.types.labels import platform_of
from agent.types.meanings import audience_of, require_consent
from memory.audience import PRIVATE, Place
from memory.errors import NotFound
from memory.facts.aliases import also_called, names_in
from memory.people.places import Places
from memory.people.profile import UserContext
from memory.people.profile_entries import entry_for
from memory.records import Decision, Erased, Forgotten, Memory
from memory.search.core_facts import core_facts
from memory.sql.messages.summaries import owner_of
from memory.text.names import fold, named

if TYPE_CHECKING:
    from agent.wiring.components import Components

MODES = ("companion", "study", "work")
NOT_TOLD = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of a value that no person stated: anything that a person states is newer."""


@checks_arguments
@dataclass(frozen=True)
class PeopleService:
    parts: "Components"
    memories: MemoryService

    @property
    def places(self) -> Places:
        """Return the places in which people wrote, and those where they want nothing stored."""
        return self.parts.places

    async def context(self, *, user: User, place: Where = None) -> UserContext:
        """Return the person's profile, their most important facts, and their open tasks."""
        where = place_of(place)
        audience = await self.parts.links.audience(user, where)
        facts = await core_facts(self.parts.store, user, audience, self.parts.clock())
        tasks = await self.parts.tasks.list(user, where)
        known = await self.parts.profiles.view(user, where, self.parts.clock())
        return replace(known, long_term_facts=tuple(facts), open_tasks=tuple(tasks))

    async def set_context(
        self, field: ShortText, value: ShortText | bool | None, *, user: User, place: Where = None
    ) -> UserContext:
        """Set a field of the profile or the preferences, or add to a list; an empty value removes it. The
        field `mode` is the purpose of the conversation: companion, study or work."""
        where = place_of(place)
        await self.parts.erasure.finished(user)
        await require_consent(self.parts.places, user, where)
        text = "" if value is None else str(value)
        if field.strip().lower() == "mode":
            await self._set_mode(text.strip().lower(), user, where)
        else:
            try:
                entry = entry_for(field, text, self.parts.clock())
            except ValueError as error:
                raise BadInput(str(error)) from error
            await self.parts.profiles.merge(user, where, [entry], self.parts.clock())
        return await self.context(user=user, place=where)

    async def zone(self, *, user: User) -> tzinfo | None:
        """Return the person's time zone; None if it is unknown."""
        known = await self.parts.profiles.view(user, PRIVATE, self.parts.clock())
        return known.zone if known.profile.timezone else None

    async def unkept(self, *, user: User) -> list[Place]:
        """Return the places where the person wants nothing stored; `PRIVATE` means everywhere."""
        return await self.parts.places.unkept(user)

    async def keep(self, wanted: bool, *, user: User, place: Where = None) -> None:
        """Set whether the person's messages in the place may be stored from now on; without a place,
        everywhere. They get replies either way. Data that is already stored stays until it is forgotten."""
        await self.parts.places.keep(user, place_of(place), self.parts.clock(), wanted=wanted)

    async def note_zone(self, zone: ShortText, *, user: User) -> None:
        """Store the time zone that a chat platform or a browser reports, unless the person stated one. A zone
        that cannot be read is ignored."""
        if not (zone and self.parts.settings.memory and await self.parts.places.keeps(user, PRIVATE)):
            return
        with suppress(ValueError):
            entry = entry_for("timezone", zone, NOT_TOLD)
            await self.parts.erasure.finished(user)
            await self.parts.profiles.merge(user, PRIVATE, [entry])

    async def named(self, text: Text, *, user: User, place: Where = None) -> list[str]:
        """Return the people whom the text mentions, among those who wrote where the user may read."""
        return sorted(named(text, await self.parts.transcript.speakers.authors(audience_of(user, place))))

    async def alias(self, person: Name, other: Name, *, user: User, place: Where = None) -> Decision:
        """Remember that a person has another name. A search for either name then finds both."""
        content = also_called(person, other)
        if names_in(content) is None:
            raise BadInput("give two names that differ, each of at most four words")
        return await self.memories.remember(content, subjects=(person, other), user=user, place=place)

    async def aliases(self, *, user: User, place: Where = None) -> list[tuple[Memory, str, str]]:
        """Return the memories that give a person another name, newest first, each with the two names."""
        known = await self.memories.list(user=user, place=place)
        return [(memory, *pair) for memory in known if (pair := names_in(memory.content))]

    async def forget_alias(self, person: Name, other: Name, *, user: User, place: Where = None) -> Forgotten:
        """Forget that a person has another name. Raises NotFound if it is not remembered."""
        wanted = {fold(person), fold(other)}
        for memory, *pair in await self.aliases(user=user, place=place):
            if {*map(fold, pair)} == wanted:
                return await self.memories.forget(memory.id, user=user, place=place)
        raise NotFound(f"{person!r} is not known as {other!r} here; `hachi people aliases` shows who is")

    async def preview_erase(self, *, user: User, linked: bool = False) -> Mapping[str, int]:
        """Count by kind what `erase` would delete from the database now."""
        found = Counter[str]()
        for one in (user, *(await self.parts.links.of(user) if linked else ())):
            found.update(await self.parts.erasure.preview(one))
        return dict(found)

    async def erase(self, *, user: User, linked: bool = False) -> Erased:
        """Erase a person: delete everything of theirs for good, and verify that it is gone; with `linked`
        their linked accounts too. Returns one receipt for all. Messages that they send meanwhile are handled
        afterwards, as from a new person."""
        others = await self.parts.links.of(user) if linked else ()
        receipts = [await self.parts.erasure.erase(one) for one in (*others, user)]
        removed = Counter[str]()
        for receipt in receipts:
            removed.update(receipt.removed)
        left = tuple(one for receipt in receipts for one in receipt.left)
        verified = all(receipt.verified for receipt in receipts)
        return replace(receipts[-1], removed=dict(removed), left=left, verified=verified)

    async def accounts(self, *, user: User) -> list[str]:
        """Return the accounts of this person that are linked with this one."""
        return [*await self.parts.links.of(user)]

    async def account_names(self, accounts: ShortTexts) -> dict[str, str]:
        """Return what people call these accounts, by id: the name on the newest message, and the platform, as
        in "Ana on Discord"."""
        signed = await self.parts.transcript.speakers.names(accounts)
        names = {id: signed.get(id, "").removesuffix(f" ({' '.join(id.split(':'))})") for id in accounts}
        return {
            id: f"{name or 'an account'} on {platform}" if (platform := platform_of(id)) else name or id
            for id, name in names.items()
        }

    async def link_code(self, *, user: User) -> str:
        """Return a code with which another account can be linked to this one, once, within ten minutes.
        Whoever enters it can read in private what is remembered of this account: show it to nobody else.
        Raises BadInput if the person wants nothing stored, and NotLinked."""
        await self._may_link(user)
        return await self.parts.links.code(user, self.parts.clock())

    async def code_is_of(self, code: Name, *, user: User) -> str:
        """Return the account that created this code: before `link`, ask the person whether it is theirs.
        Raises NotLinked for an invalid code."""
        return await self.parts.links.giver(code, user, self.parts.clock())

    async def link(self, code: Name, *, user: User) -> list[str]:
        """Link this account with the one that created the code. In private, each can then read, forget and
        export what belongs to the other. Returns all accounts that are linked with it now. Raises BadInput if
        the person wants nothing stored, and NotLinked."""
        await self._may_link(user)
        return [*await self.parts.links.link(code, user, self.parts.clock())]

    async def unlink(self, *, user: User) -> list[str]:
        """Unlink this account from all others, and return them. Each keeps its own memories."""
        return [*await self.parts.links.unlink(user)]

    async def _may_link(self, user: str) -> None:
        await self.parts.erasure.finished(user)
        await require_consent(self.parts.places, user, PRIVATE)

    async def _set_mode(self, mode: str, user: User, place: Place) -> None:
        if mode and mode not in MODES:
            raise BadInput(f"there is no mode {mode!r}; use {', '.join(MODES)}, or nothing to unset it")
        now = self.parts.clock()
        conversation = TurnRequest("", user, now, place).conversation_id
        await self.parts.summaries.set_mode(conversation, owner_of(user, place), mode or None, now)
