"""Which messages are answered, and what they say."""

import re
from typing import Any

import discord

from agent.surfaces.bots.people import display_name
from memory.people.places import Listening

KINDS = (discord.MessageType.default, discord.MessageType.reply)
"""The others tell of people who join, of pins and the like."""

_TOKEN = re.compile(r"<(?:@!?(?P<user>\d+)|@&(?P<role>\d+)|#(?P<channel>\d+)|a?:(?P<emoji>\w+):\d+)>")


def from_machine(message: discord.Message) -> bool:
    return message.author.bot or message.webhook_id is not None


def addressed(message: discord.Message, me: Any) -> bool:
    """Whether it mentions the bot, its own role, or replies to it."""
    role = message.guild.self_role if message.guild else None
    if me.id in message.raw_mentions or (role is not None and role.id in message.raw_role_mentions):
        return True
    return author_replied_to(message) == int(me.id)


def author_replied_to(message: discord.Message) -> int | None:
    """Who wrote what it replies to; None where it is no reply, or to something that is gone."""
    replied = message.reference.resolved if message.reference else None
    return replied.author.id if isinstance(replied, discord.Message) else None


def wanted(message: discord.Message, me: Any, listening: Listening) -> bool:
    """Whether it is to be answered; `listening` is that of its place, "everything" in private."""
    if listening == "nothing":
        return False
    if isinstance(message.channel, discord.DMChannel) or addressed(message, me):
        return True
    return listening == "everything" and not _to_others(message)


def _to_others(message: discord.Message) -> bool:
    """Where everything is listened to, people still talk to each other."""
    return bool(message.raw_mentions) or author_replied_to(message) is not None


def readable(message: discord.Message, me: Any) -> str:
    """What was said, with the names that people saw in place of ids. Without the mention of the bot that it
    begins or ends with; where there is nothing else, that mention."""
    own = {str(me.id)} | (
        {str(message.guild.self_role.id)} if message.guild and message.guild.self_role else set()
    )
    call = "|".join(f"<@[!&]?{id}>" for id in sorted(own))
    text = re.sub(rf"^(?:\s*(?:{call})[\s,:]*)+|(?:\s*(?:{call}))+\s*$", "", message.content)
    text = _TOKEN.sub(lambda found: _shown(found, message, me), text).strip()
    return text or ("" if message.attachments else f"@{me.name}")


def _shown(found: re.Match[str], message: discord.Message, me: Any) -> str:
    if found["emoji"]:
        return f":{found['emoji']}:"
    if found["user"]:
        id = int(found["user"])
        people = [me, *message.mentions, *([message.guild.get_member(id)] if message.guild else [])]
        name = next((one.display_name for one in people if one is not None and one.id == id), None)
        return f"@{display_name(name, 'somebody')}"
    if found["role"]:
        role = message.guild.get_role(int(found["role"])) if message.guild else None
        return f"@{display_name(role.name if role else None, 'a role')}"
    channel = message.guild.get_channel_or_thread(int(found["channel"])) if message.guild else None
    return f"#{display_name(channel.name if channel else None, 'a channel')}"
