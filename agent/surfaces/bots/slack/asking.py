"""What people ask for by commands, buttons and the App Home. The answers are for their eyes only."""

import logging
import re
from collections.abc import Mapping
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.answers import EDIT, MORE, Answer
from agent.surfaces.bots.commands import Asker, Commands
from agent.surfaces.bots.slack.answering import Respond, asker_in, respond_with
from agent.surfaces.bots.slack.blocks import ALONE, PRESSED
from agent.surfaces.bots.slack.editing import EDITED, Editing
from agent.surfaces.bots.slack.home import publish_home
from agent.surfaces.bots.slack.markup import plain
from agent.surfaces.bots.slack.people import FAULTS
from memory.people.places import LISTENING

log = logging.getLogger("hachi.slack")

COMMANDS = (
    "/memories",
    "/remember",
    "/forget",
    "/forget-me",
    "/privacy",
    "/tasks",
    "/context",
    "/trace",
    "/listen",
)
NOT_ALLOWED = Answer("An admin of the workspace, or whoever made this channel, can set that; you may not.")
LISTEN_USAGE = Answer(f"Say `/listen` and one of: {', '.join(LISTENING)}.")
NO_FACT = Answer("Say what I shall remember: `/remember Ana prefers tea`.")


class Asking:
    def __init__(self, commands: Commands, client: AsyncWebClient) -> None:
        self._commands = commands
        self._client = client
        self._editing = Editing(commands, client)

    def add_to(self, app: AsyncApp) -> None:
        for name in COMMANDS:
            app.command(name)(self._command)
        app.action(re.compile(rf"^{PRESSED}\."))(self._press)
        app.view(EDITED)(self._editing.submitted)
        app.event("app_home_opened")(self._home)

    async def _command(self, ack: Respond, respond: Respond, command: dict[str, Any], context: Any) -> None:
        await ack()
        asker = asker_in(context, command.get("channel_id"))
        answer = await self._answer(command["command"], plain(command.get("text") or "", {}), asker, command)
        await respond_with(respond, answer, replace=False)

    async def _answer(self, name: str, text: str, asker: Asker, command: Mapping[str, Any]) -> Answer:
        commands = self._commands
        match name:
            case "/memories":
                return await commands.memories(asker, text)
            case "/remember":
                return await commands.remember(asker, text) if text.strip() else NO_FACT
            case "/forget":
                return await commands.forget(asker, text)
            case "/forget-me":
                return await commands.forget_me(asker)
            case "/privacy":
                return await commands.privacy(asker)
            case "/tasks":
                return await commands.tasks(asker)
            case "/context":
                return await commands.context(asker)
            case "/trace":
                return await commands.trace(asker)
            case _:
                return await self._listen(asker, text.strip().lower(), command)

    async def _listen(self, asker: Asker, wanted: str, command: Mapping[str, Any]) -> Answer:
        listening = next((choice for choice in LISTENING if choice == wanted), None)
        if wanted and listening is None:
            return LISTEN_USAGE
        if listening and not asker.place.private and not await self._may_set(command):
            return NOT_ALLOWED
        return await self._commands.listen(asker, listening)

    async def _may_set(self, command: Mapping[str, Any]) -> bool:
        """Where Slack does not tell, nobody may."""
        try:
            person = (await self._client.users_info(user=command["user_id"]))["user"]
            if person.get("is_admin") or person.get("is_owner"):
                return True
            channel = (await self._client.conversations_info(channel=command["channel_id"]))["channel"]
        except FAULTS as error:
            log.warning("who may set what is listened to is not known: %s", error)
            return False
        return bool(channel.get("creator") == command["user_id"])

    async def _press(self, ack: Respond, respond: Respond, body: dict[str, Any], context: Any) -> None:
        await ack()
        pressed = body["actions"][0]
        action, value = pressed["action_id"].split(".")[1], str(pressed.get("value") or "")
        if (body.get("view") or {}).get("type") == "home":
            await self._press_at_home(action, value, context)
            return
        container = body.get("container") or {}
        channel = (body.get("channel") or {}).get("id") or container.get("channel_id")
        if action == EDIT:
            await self._editing.ask(body, context, channel, value)
            return
        answer = await self._commands.press(asker_in(context, channel), action, value)
        replace = action == MORE or pressed["action_id"].endswith(f".{ALONE}")
        await respond_with(respond, answer, replace=replace)

    async def _press_at_home(self, action: str, value: str, context: Any) -> None:
        asker = asker_in(context, None)
        if action == MORE:
            skip = int(value) if value.isdecimal() else 0
            await publish_home(self._client, self._commands, asker.user, context.user_id, skip=skip)
            return
        answer = await self._commands.press(asker, action, value)
        await publish_home(self._client, self._commands, asker.user, context.user_id, told=answer.text)

    async def _home(self, event: dict[str, Any], context: Any) -> None:
        if event.get("tab", "home") == "home":
            asker = asker_in(context, None)
            await publish_home(self._client, self._commands, asker.user, event["user"])
