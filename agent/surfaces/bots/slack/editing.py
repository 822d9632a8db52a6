"""Saying a memory differently: a modal asks for the words, the answer comes where the button was."""

import json
import logging
from collections.abc import Mapping
from typing import Any

from slack_bolt.context.respond.async_respond import AsyncRespond
from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.commands import Commands
from agent.surfaces.bots.slack.answering import asker_in, respond_with
from agent.surfaces.bots.slack.blocks import ALONE
from agent.surfaces.bots.slack.people import FAULTS
from memory.remember import MAX_CONTENT

log = logging.getLogger("hachi.slack")

EDITED = "hachi.edited"
"""The id of what is filled in."""
_BLOCK, _WORDS = "memory", "words"


class Editing:
    """What is needed at the end is kept by Slack, in the modal itself: it may come back after a restart."""

    def __init__(self, commands: Commands, client: AsyncWebClient) -> None:
        self._commands = commands
        self._client = client

    async def ask(self, body: Mapping[str, Any], context: Any, channel: str | None, id: str) -> None:
        """Show the modal to whoever pressed the button. Slack waits 3 s for it."""
        respond = AsyncRespond(response_url=body["response_url"])
        words = await self._commands.words_of(asker_in(context, channel), id)
        if not isinstance(words, str):
            await respond_with(respond, words, replace=False)
            return
        alone = body["actions"][0]["action_id"].endswith(f".{ALONE}")
        kept = {"id": id, "channel": channel, "respond": body["response_url"], "alone": alone}
        try:
            await self._client.views_open(trigger_id=body["trigger_id"], view=_modal(words, kept))
        except FAULTS as error:
            log.warning("the modal is not shown: %s: %s", type(error).__name__, error)

    async def submitted(self, ack: Any, view: Mapping[str, Any], context: Any) -> None:
        words = str(view["state"]["values"][_BLOCK][_WORDS].get("value") or "")
        if not words.strip():
            await ack(response_action="errors", errors={_BLOCK: "Say what I am to remember."})
            return
        await ack()
        kept = json.loads(view["private_metadata"])
        answer = await self._commands.edit(asker_in(context, kept["channel"]), kept["id"], words)
        replace = bool(kept["alone"] and answer.settled)
        await respond_with(AsyncRespond(response_url=kept["respond"]), answer, replace=replace)


def _modal(words: str, kept: Mapping[str, Any]) -> dict[str, Any]:
    entry = {
        "type": "plain_text_input",
        "action_id": _WORDS,
        "multiline": True,
        "initial_value": words,
        "max_length": MAX_CONTENT,
    }
    return {
        "type": "modal",
        "callback_id": EDITED,
        "private_metadata": json.dumps(kept),
        "title": _plain("Say it differently"),
        "submit": _plain("Remember"),
        "close": _plain("Cancel"),
        "blocks": [
            {
                "type": "input",
                "block_id": _BLOCK,
                "label": _plain("What I am to remember"),
                "element": entry,
            }
        ],
    }


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}
