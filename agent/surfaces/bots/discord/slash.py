"""The commands on Discord, and what its buttons do. Only who asked sees the answers."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import discord
from discord import app_commands

from agent.surfaces.bots.answers import EDIT, ERASE, KEEP, MORE, Answer, Settled
from agent.surfaces.bots.commands import Asker, Commands
from agent.surfaces.bots.discord.places import place_of, user_name
from agent.surfaces.bots.discord.rendering import EditModal, HachiButton, struck, text_of, view_of, without
from agent.surfaces.bots.faults import told
from memory.people.places import Listening

log = logging.getLogger("hachi.discord")

Answers = Callable[[Asker], Awaitable[Answer]]

NOWHERE = Answer("I can tell you that in a server's channel, or in our direct messages.")
NOT_YOURS = Answer("That button is for somebody else. Use /memories for your own.")
NOT_ALLOWED = Answer("Who may manage this channel can set that; you may not.")
_REPLACES = (MORE, ERASE, KEEP)
"""Buttons whose answer stands in place of the message they are on."""
CONTENT = app_commands.Range[str, 1, 1000]


def build_tree(client: discord.Client, commands: Commands) -> app_commands.CommandTree:
    """All commands, in servers and direct messages."""
    tree = Tree(
        client,
        allowed_contexts=app_commands.AppCommandContext(guild=True, dm_channel=True, private_channel=False),
        allowed_installs=app_commands.AppInstallationType(guild=True, user=False),
    )

    @tree.command(name="memories", description="What I remember here, newest first.")
    @app_commands.describe(query="Only what bears on this")
    async def memories(interaction: discord.Interaction, query: CONTENT | None = None) -> None:
        await respond(interaction, lambda asker: commands.memories(asker, query or ""))

    @tree.command(name="remember", description="Have me remember something.")
    @app_commands.describe(content="One fact, as a sentence")
    async def remember(interaction: discord.Interaction, content: CONTENT) -> None:
        await respond(interaction, lambda asker: commands.remember(asker, content))

    @tree.command(name="forget", description="Have me forget one thing.")
    @app_commands.describe(what="Words of it, or its id")
    async def forget(interaction: discord.Interaction, what: CONTENT) -> None:
        await respond(interaction, lambda asker: commands.forget(asker, what))

    @tree.command(name="forget-me", description="Take away everything I keep of you, everywhere.")
    async def forget_me(interaction: discord.Interaction) -> None:
        await respond(interaction, commands.forget_me)

    @tree.command(name="privacy", description="What I keep, who may read it, and where it goes.")
    async def privacy(interaction: discord.Interaction) -> None:
        await respond(interaction, commands.privacy)

    @tree.command(name="tasks", description="Your open tasks.")
    async def tasks(interaction: discord.Interaction) -> None:
        await respond(interaction, commands.tasks)

    @tree.command(name="context", description="What I know of you here.")
    async def context(interaction: discord.Interaction) -> None:
        await respond(interaction, commands.context)

    @tree.command(name="trace", description="What I did about your last message here.")
    async def trace(interaction: discord.Interaction) -> None:
        await respond(interaction, commands.trace)

    @tree.command(name="listen", description="What I listen to in this channel.")
    @app_commands.describe(to="Unset: say how it stands")
    @app_commands.allowed_contexts(guilds=True, dms=False, private_channels=False)
    async def listen(interaction: discord.Interaction, to: Listening | None = None) -> None:
        async def answer(asker: Asker) -> Answer:
            if to is not None and not interaction.permissions.manage_channels:
                return NOT_ALLOWED
            return await commands.listen(asker, to)

        await respond(interaction, answer)

    return tree


class Tree(app_commands.CommandTree):
    async def on_error(
        self, interaction: discord.Interaction, error: app_commands.AppCommandError, /
    ) -> None:
        text = told(getattr(error, "original", error))
        try:
            await send(interaction, Answer(text))
        except (discord.DiscordException, OSError) as fault:
            log.warning("a command is not answered: %s", fault)


async def respond(interaction: discord.Interaction, answers: Answers) -> None:
    """Told at once that it is being done, Discord waits a quarter of an hour for the answer; else 3 s."""
    await interaction.response.defer(ephemeral=True, thinking=True)
    asker = asker_of(interaction)
    await send(interaction, NOWHERE if asker is None else await answers(asker))


def asker_of(interaction: discord.Interaction) -> Asker | None:
    """Who asks, and where; None in a place that is neither a server's nor our direct messages."""
    place = place_of(interaction.channel)
    if place is None or (place.private and interaction.guild_id is not None):
        return None
    return Asker(user_name(interaction.user.id), place)


async def send(interaction: discord.Interaction, answer: Answer) -> None:
    view = view_of(answer, interaction.user.id)
    await interaction.followup.send(
        text_of(answer),
        ephemeral=True,
        view=view or discord.utils.MISSING,
        allowed_mentions=discord.AllowedMentions.none(),
        suppress_embeds=True,
    )


async def press(commands: Commands, button: HachiButton, interaction: discord.Interaction) -> None:
    """A button was pressed, perhaps by somebody who only reads along."""
    asker = asker_of(interaction)
    if asker is None or button.user != interaction.user.id:
        await interaction.response.defer(ephemeral=True, thinking=True)
        await send(interaction, NOT_YOURS if asker else NOWHERE)
        return
    if button.action == EDIT:
        await _ask_for_words(commands, asker, button.value, interaction)
        return
    await interaction.response.defer()
    answer = await commands.press(asker, button.action, button.value)
    if button.action in _REPLACES:
        view = view_of(answer, interaction.user.id)
        await interaction.edit_original_response(content=text_of(answer), view=view)
        return
    await _settle(interaction, button.value, answer.settled)
    await send(interaction, answer)


async def _ask_for_words(commands: Commands, asker: Asker, id: str, interaction: discord.Interaction) -> None:
    """A modal is the first answer or none, and is due within 3 s: the memory is looked up before."""
    words = await commands.words_of(asker, id)
    if isinstance(words, Answer):
        await interaction.response.defer(ephemeral=True, thinking=True)
        await send(interaction, words)
        return

    async def edited(submitted: discord.Interaction, content: str) -> None:
        await submitted.response.defer()
        answer = await commands.edit(asker, id, content)
        if answer.settled:
            await _settle(submitted, id, answer.settled)
        await send(submitted, answer)

    await interaction.response.send_modal(EditModal(words, edited))


async def _settle(interaction: discord.Interaction, value: str, settled: Settled | None) -> None:
    """What the message with the button said of a memory or task is done with: its buttons go, and a line in
    which all could read what was remembered."""
    message = interaction.message
    if message is None:
        return
    changed: dict[str, Any] = {"view": without(message, value)}
    if settled and (text := struck(message.content, settled)) != message.content:
        changed["content"] = text
    await interaction.edit_original_response(**changed)
