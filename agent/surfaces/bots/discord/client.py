"""Hachi on Discord: what is written there becomes turns, and commands answers."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import discord

from agent.errors import FAULTS
from agent.surfaces.bots.commands import Commands
from agent.surfaces.bots.discord.attachments import read_files
from agent.surfaces.bots.discord.places import place_of, user_name
from agent.surfaces.bots.discord.reminding import remind
from agent.surfaces.bots.discord.rendering import HachiButton
from agent.surfaces.bots.discord.slash import build_tree, press
from agent.surfaces.bots.discord.stage import DiscordStage
from agent.surfaces.bots.discord.triggers import KINDS, addressed, from_machine, readable, wanted
from agent.surfaces.bots.faults import told
from agent.surfaces.bots.people import display_name
from agent.surfaces.bots.turns import Said, Turns
from memory.audience import Place
from memory.people.places import Listening

if TYPE_CHECKING:
    from agent.companion import Companion

log = logging.getLogger("hachi.discord")

SOURCE = "discord"
PERMISSIONS = discord.Permissions(
    view_channel=True,
    send_messages=True,
    send_messages_in_threads=True,
    read_message_history=True,
)
"""What the bot asks for when it is invited."""


def intents() -> discord.Intents:
    """What Discord is asked to tell. The content of messages is a privileged one: it is switched on in the
    developer portal."""
    return discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True)


class HachiClient(discord.Client):
    def __init__(self, pet: "Companion", **options: Any) -> None:
        """`options` are those of `discord.Client`."""
        super().__init__(
            intents=intents(),
            allowed_mentions=discord.AllowedMentions.none(),  # whatever a model or a memory says
            member_cache_flags=discord.MemberCacheFlags.none(),
            max_messages=None,
            **options,
        )
        self.pet = pet
        self.online = asyncio.Event()
        self.commands = Commands(pet)
        self.tree = build_tree(self, self.commands)
        self.pressed = partial(press, self.commands)
        self.turns = Turns(pet, DiscordStage(self.commands))
        self._places = pet.services.places
        self._deliveries = pet.services.deliveries
        self._inbox: asyncio.Queue[discord.Message] = asyncio.Queue()
        self._reading: asyncio.Task[None] | None = None
        self._unreachable: Callable[[], None] = lambda: None

    async def setup_hook(self) -> None:
        self.add_dynamic_items(HachiButton)
        self._reading = asyncio.create_task(self._read(), name="hachi discord inbox")
        try:
            await self.tree.sync()
        except (discord.DiscordException, OSError) as error:
            log.error("the commands are as they were, Discord does not take them: %s", error)

    async def on_ready(self) -> None:
        if not self.online.is_set():
            self.online.set()
            self._unreachable = self.pet.reminders.register(f"{SOURCE}:", partial(remind, self, self._places))
        log.info("on Discord as %s, in %d servers", self.user, len(self.guilds))

    async def on_message(self, message: discord.Message) -> None:
        self._inbox.put_nowait(message)  # one after the other, so that they stay in order

    async def on_error(self, event_method: str, /, *args: Any, **kwargs: Any) -> None:
        log.exception("an event of Discord's (%s) broke something", event_method)

    async def settle(self) -> None:
        """Until all that has come so far has been answered."""
        await self._inbox.join()
        await self.turns.settle()

    async def leave(self) -> None:
        """Hear no more, finish what is being answered, and close."""
        self._unreachable()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self.turns.stop()
        await self.close()

    async def _read(self) -> None:
        while True:
            message = await self._inbox.get()
            try:
                await self._hear(message)
            except FAULTS as error:
                await self._apologise(message, error)
            except Exception:
                log.exception("message %s is not read", message.id)
            finally:
                self._inbox.task_done()

    async def _hear(self, message: discord.Message) -> None:
        if from_machine(message) or message.type not in KINDS:
            return
        place = await self._place(message)
        if place is None or not wanted(message, self.user, await self._listening(place)):
            return
        if not await self._deliveries.first(SOURCE, str(message.id), self.pet.clock()):
            return
        self.turns.hear(
            Said(
                user=user_name(message.author.id),
                author=display_name(message.author.display_name, message.author.name),
                text=readable(message, self.user),
                place=place,
                attached=partial(read_files, message.attachments) if message.attachments else None,
                where=message,
            )
        )

    async def _place(self, message: discord.Message) -> Place | None:
        """A thread that Discord has not told of is asked for: where it lies decides who may read it."""
        channel: Any = message.channel
        if isinstance(channel, discord.PartialMessageable) and channel.guild_id is not None:
            try:
                channel = await self.fetch_channel(channel.id)
            except discord.DiscordException as error:
                log.warning("message %s is not read, its channel is not known: %s", message.id, error)
        return place_of(channel)

    async def _listening(self, place: Place) -> Listening:
        try:
            return await self._places.listening(place)
        except FAULTS as error:
            log.warning("what is listened to is not known: %s", error)
            return "everything" if place.private else "mentions"

    async def _apologise(self, message: discord.Message, error: Exception) -> None:
        """Somebody waits for an answer, and there will be none."""
        text = told(error)
        if isinstance(message.channel, discord.DMChannel) or addressed(message, self.user):
            try:
                await message.channel.send(text)
            except (discord.DiscordException, OSError) as fault:
                log.warning("message %s is not answered: %s", message.id, fault)
