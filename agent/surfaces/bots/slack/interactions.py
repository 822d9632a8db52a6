"""Slash commands and buttons on Slack. Only the person who asked sees an answer."""

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.answers import Answer, Asker
from agent.surfaces.bots.commands import COMMANDS, LISTEN, NO_TEXT, Commands
from agent.surfaces.bots.platform import IncomingMessage
from agent.surfaces.bots.slack.access import API_ERRORS
from agent.surfaces.bots.slack.messages import Reader, Source, place_of, user_name
from agent.surfaces.bots.slack.rendering import ACTION, REPLACES, answer_blocks, answer_text, readable_text

log = logging.getLogger("hachi.slack")

Respond = Callable[..., Awaitable[Any]]
PREFIX = "/hachi-"
"""What the manifest that comes with Hachi puts before the names of commands."""
REMEMBER = "remember"
"""The id of the entry in a message's menu."""
_NAMES = "|".join(command.name for command in (*COMMANDS, LISTEN))
COMMAND = re.compile(rf"^/(?:\S+-)?({_NAMES})$")
"""A command of the app, with whatever prefix the manifest gives it."""


class Interactions:
    def __init__(self, app: AsyncApp, commands: Commands, client: AsyncWebClient, platform: Reader) -> None:
        self._commands = commands
        self._client = client
        self._platform = platform
        app.command(COMMAND)(self._command)
        app.action(re.compile(rf"^{ACTION}\."))(self._press)
        app.message_shortcut(REMEMBER)(self._remember_this)

    async def _command(self, ack: Respond, respond: Respond, command: dict[str, Any], context: Any) -> None:
        await ack()
        written, text = command["command"], readable_text(command.get("text") or "", {})
        name = COMMAND.sub(r"\1", written)
        asker = await self._named(_asker(context, command["channel_id"], written.removesuffix(name)), context)
        if name == LISTEN.name:
            answer = await self._commands.listen(asker, text, partial(self._may_set_listening, command))
        else:
            answer = await self._commands.run(name, asker, text)
        await _send(respond, replace(answer, replaces=False))

    async def _named(self, asker: Asker, context: Any) -> Asker:
        """Return the asker with their name, unless Slack does not tell it."""
        name = await self._platform.name(context.user_id)
        return asker if name == context.user_id else replace(asker, name=name)

    async def _may_set_listening(self, command: Mapping[str, Any]) -> bool:
        """Return whether the person is an admin of the workspace or created the channel."""
        try:
            person = (await self._client.users_info(user=command["user_id"]))["user"]
            if person.get("is_admin") or person.get("is_owner"):
                return True
            channel = (await self._client.conversations_info(channel=command["channel_id"]))["channel"]
        except API_ERRORS as error:
            log.warning("cannot find out who may set what is listened to: %s", error)
            return False
        return bool(channel.get("creator") == command["user_id"])

    async def _press(self, ack: Respond, respond: Respond, body: dict[str, Any], context: Any) -> None:
        await ack()
        pressed = body["actions"][0]
        action, value = pressed["action_id"].split(".")[1], str(pressed.get("value") or "")
        replaces = pressed["action_id"].endswith(f".{REPLACES}")
        channel, container = body["channel"]["id"], body.get("container") or {}
        asker, thread = _asker(context, channel), container.get("thread_ts")
        answer = await self._commands.press(asker, action, value)
        taken = answer.replaces or (replaces and bool(answer.outcome))
        await _send(respond, replace(answer, replaces=taken), thread)

    async def _remember_this(
        self, ack: Respond, respond: Respond, shortcut: Mapping[str, Any], context: Any
    ) -> None:
        await ack()
        channel, data = shortcut["channel"]["id"], shortcut["message"]
        if not data.get("text"):
            await _send(respond, NO_TEXT, data.get("thread_ts"))
            return
        asker = await self._named(_asker(context, channel), context)
        team, author = context.team_id or context.enterprise_id, str(data.get("user") or data.get("bot_id"))
        source = Source(team, channel, author, data["ts"], context.bot_user_id, {"text": data["text"]})
        message = IncomingMessage(user_name(team, author), asker.place, source=source)
        content = await self._platform.read(message)
        answer = await self._commands.remember_message(asker, content, message.user)
        await _send(respond, answer, data.get("thread_ts"))


def _asker(context: Any, channel: str, prefix: str = PREFIX) -> Asker:
    team = context.team_id or context.enterprise_id
    return Asker(user_name(team, context.user_id), place_of(team, channel), prefix)


async def _send(respond: Respond, answer: Answer, thread: str | None = None) -> None:
    try:
        sent = await respond(
            text=answer_text(answer),
            blocks=answer_blocks(answer),
            response_type="in_channel" if answer.public else "ephemeral",
            replace_original=answer.replaces,
            thread_ts=thread,
        )
    except API_ERRORS as error:
        log.warning("cannot show an answer: %s: %s", type(error).__name__, error)
    else:
        if sent.status_code != 200:
            log.warning("cannot show an answer: Slack says %s %s", sent.status_code, sent.body)
