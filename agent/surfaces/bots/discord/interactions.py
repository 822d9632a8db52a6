"""Slash commands and buttons on Discord. The answers are ephemeral."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, get_args

import discord
from discord import app_commands

from agent.companion import Companion
from agent.errors import HachiError
from agent.surfaces.bots.answers import Answer, Asker, describe_error
from agent.surfaces.bots.attachments.attachment import display_name
from agent.surfaces.bots.commands import COMMANDS, LISTEN, NO_TEXT, REMEMBER_THIS, Command, Commands
from agent.surfaces.bots.discord.messages import API_ERRORS, origin_of, place_of, user_name
from agent.surfaces.bots.discord.rendering import HachiButton, answer_text, answer_view, without_receipt
from agent.surfaces.bots.platform import IncomingMessage
from memory.people.places import Listening
from memory.records import ForgetKind

log = logging.getLogger("hachi.discord")

NOWHERE = Answer("This works in our direct messages, and in the channels where I am allowed.")
OUTDATED = Answer(
    "This command has changed. I am renewing the list: try again in a minute, and reload Discord if you "
    "still see the old one."
)
NOT_YOURS = Answer("That button is for somebody else. /memories shows what is yours.")
TEXT = app_commands.Range[str, 1, 1000]


class Tree(app_commands.CommandTree):
    async def interaction_check(self, interaction: discord.Interaction, /) -> bool:
        """Let one process answer: every process gets each command."""
        return await is_first(interaction)

    async def on_error(
        self, interaction: discord.Interaction, error: app_commands.AppCommandError, /
    ) -> None:
        outdated = isinstance(error, app_commands.CommandNotFound | app_commands.CommandSignatureMismatch)
        try:
            if outdated:
                await _respond(interaction, OUTDATED)
                await self.sync()
                return
            await _send(interaction, Answer(describe_error(getattr(error, "original", error))))
        except API_ERRORS as failure:
            log.warning("a command is not answered: %s", failure)


def build_tree(client: discord.Client, commands: Commands) -> app_commands.CommandTree:
    tree = Tree(
        client,
        allowed_contexts=app_commands.AppCommandContext(guild=True, dm_channel=True, private_channel=False),
        allowed_installs=app_commands.AppInstallationType(guild=True, user=False),
    )
    for command in COMMANDS:
        callback = _callback(command, partial(commands.run, command.name))
        tree.command(name=command.name, description=command.description)(callback)

    @tree.context_menu(name=REMEMBER_THIS)
    async def remember_this(interaction: discord.Interaction, message: discord.Message) -> None:
        await _respond(interaction, lambda asker: _remember(commands, asker, interaction, message))

    @tree.command(name=LISTEN.name, description=LISTEN.description)
    @app_commands.describe(to=LISTEN.argument.description if LISTEN.argument else "")
    @app_commands.allowed_contexts(guilds=True, dms=False, private_channels=False)
    async def listen(interaction: discord.Interaction, to: Listening | None = None) -> None:
        async def may_set() -> bool:
            return interaction.permissions.manage_channels

        await _respond(interaction, lambda asker: commands.listen(asker, to or "", may_set))

    return tree


def _callback(command: Command, run: Callable[..., Awaitable[Answer]]) -> Any:
    """Build the callback of a command. discord.py reads the command's options from its signature."""

    async def without(interaction: discord.Interaction) -> None:
        await _respond(interaction, run)

    async def optional(interaction: discord.Interaction, text: TEXT | None = None) -> None:
        await _respond(interaction, lambda asker: run(asker, text or ""))

    async def required(interaction: discord.Interaction, text: TEXT) -> None:
        await _respond(interaction, lambda asker: run(asker, text))

    if command.argument is None:
        return without
    callback: Any = required if command.argument.required else optional
    described = app_commands.describe(text=command.argument.description)(callback)
    return app_commands.rename(text=command.argument.name)(described)


async def _remember(
    commands: Commands, asker: Asker, interaction: discord.Interaction, message: discord.Message
) -> Answer:
    if not (message.content or message.message_snapshots):
        return NO_TEXT
    said = IncomingMessage(user_name(message.author.id), asker.place, source=message)
    platform = interaction.client.conversations.platform  # type: ignore[attr-defined]
    return await commands.remember_message(asker, await platform.read(said), said.user)


async def is_first(interaction: discord.Interaction) -> bool:
    """Return whether no other process answers this. Without the database nobody knows, and all may try."""
    pet: Companion = interaction.client.pet  # type: ignore[attr-defined]
    try:
        return await pet.conversations.deliveries.first(
            "discord", f"interaction {interaction.id}", pet.clock()
        )
    except HachiError as error:
        log.warning("another process may answer interaction %s too: %s", interaction.id, error)
        return True


def _asker(interaction: discord.Interaction) -> Asker | None:
    """Return the person and place; None outside of servers and direct messages with the bot, and where the
    operator does not allow it."""
    place, allowed = place_of(interaction.channel), interaction.client.allowed  # type: ignore[attr-defined]
    if place is None or (place.private and interaction.guild_id is not None):
        return None
    if not allowed.permits(interaction.channel, interaction.user):
        return None
    name = display_name(interaction.user.display_name, interaction.user.name)
    return Asker(user_name(interaction.user.id), place, name=name)


async def _respond(
    interaction: discord.Interaction, answer: Answer | Callable[[Asker], Awaitable[Answer]]
) -> None:
    """Defer and then send the answer. Discord waits 3 s for an answer, and 15 minutes once it is deferred."""
    await interaction.response.defer(ephemeral=True, thinking=True)
    asker = _asker(interaction)
    if asker and not isinstance(answer, Answer):
        answer = await answer(asker)
    answer = answer if asker and isinstance(answer, Answer) else NOWHERE
    if answer.public:  # the answer to what was deferred is seen by one person only
        await interaction.delete_original_response()
    await _send(interaction, answer)


async def _send(interaction: discord.Interaction, answer: Answer) -> None:
    await interaction.followup.send(
        answer_text(answer),
        ephemeral=not answer.public,
        view=answer_view(answer, interaction.user.id) or discord.utils.MISSING,
        allowed_mentions=discord.AllowedMentions.none(),
        suppress_embeds=True,
    )


async def press(commands: Commands, button: HachiButton, interaction: discord.Interaction) -> None:
    """Handle a button. All in a channel see the buttons below a reply, but they work for one person."""
    asker = _asker(interaction)
    stops = button.action == "stop" and button.user == interaction.user.id
    if stops:  # whichever process is writing the reply
        stopped = origin_of(int(interaction.channel_id or 0), int(button.value))
        interaction.client.stop_reply(stopped)  # type: ignore[attr-defined]
    if not await is_first(interaction):
        return
    if stops:
        await interaction.response.defer()
    elif asker is None or button.user != interaction.user.id:
        await _respond(interaction, NOT_YOURS)
    else:
        await interaction.response.defer()
        answer = await commands.press(asker, button.action, button.value)
        if answer.replaces:
            view = answer_view(answer, interaction.user.id)
            await interaction.edit_original_response(content=answer_text(answer), view=view)
        elif answer.buttons and not answer.outcome:
            await _send(interaction, answer)  # a question: the buttons stay
        else:
            on, changes = interaction.message, dict[str, Any]()
            if on:  # remove the buttons and lines that no longer apply
                changes = without_receipt(on, button.value, answer.outcome)
                await interaction.edit_original_response(**changes)
            await _send(interaction, answer)
            asked = button.action in get_args(ForgetKind)  # in a message that goes with what is forgotten
            if asked and answer.outcome and changes.get("view") and not (on and on.flags.ephemeral):
                await interaction.followup.send(**changes, ephemeral=True, suppress_embeds=True)
