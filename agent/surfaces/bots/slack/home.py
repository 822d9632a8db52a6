"""The App Home: what is remembered of a person, for their eyes only, with buttons to take it away."""

import logging
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.answers import Answer
from agent.surfaces.bots.commands import Asker, Commands
from agent.surfaces.bots.slack.blocks import (
    MOST_IN_HOME,
    answer_blocks,
    confirmed,
    context,
    header,
    section,
)
from agent.surfaces.bots.slack.markup import escaped
from agent.surfaces.bots.slack.people import FAULTS

log = logging.getLogger("hachi.slack")

MOST_IN_PART = 30
"""Blocks of each part of the page."""


async def publish_home(
    client: AsyncWebClient, commands: Commands, person: str, user: str, *, told: str = "", skip: int = 0
) -> None:
    """Show the page of `person`, who is `user` to Slack, from the memory after `skip` others on; `told` is
    said at its top. That it cannot be shown is logged."""
    view = {"type": "home", "blocks": await _blocks(commands, Asker(person), told, skip)}
    try:
        await client.views_publish(user_id=user, view=view)
    except FAULTS as error:
        log.warning("the App Home of %s is not shown: %s", user, error)


async def _blocks(commands: Commands, asker: Asker, told: str, skip: int) -> list[dict[str, Any]]:
    memories = await commands.memories(asker, skip=skip)
    tasks, known = await commands.tasks(asker), await commands.context(asker)
    forget_me = await commands.forget_me(asker)
    return [
        *([section(escaped(told)), {"type": "divider"}] if told else []),
        *_part("What I remember", memories),
        *_part("Tasks", tasks),
        *_part("What I know of you", known),
        header("Your privacy"),
        *answer_blocks(await commands.privacy(asker), MOST_IN_PART)[1:],
        context("Only you see this page."),
        confirmed(forget_me.buttons[0], forget_me.text),
    ][:MOST_IN_HOME]


def _part(title: str, answer: Answer) -> list[dict[str, Any]]:
    blocks = answer_blocks(answer, MOST_IN_PART)
    return [header(title), *(blocks[1:] if answer.items else blocks)]
