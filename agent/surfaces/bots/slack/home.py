"""The App Home: what is remembered of a person, with buttons. Only that person sees it."""

import logging

from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.answers import Answer, Asker
from agent.surfaces.bots.commands import Commands
from agent.surfaces.bots.slack.client import API_ERRORS
from agent.surfaces.bots.slack.rendering import Block, answer_blocks, confirmed, context, header

log = logging.getLogger("hachi.slack")

MAX_BLOCKS = 100
MAX_PART = 30
"""Maximum blocks of each part."""


async def publish_home(
    client: AsyncWebClient,
    commands: Commands,
    asker: Asker,
    user: str,
    *,
    answer: Answer | None = None,
    skip: int = 0,
) -> None:
    """Show the page to `user`, with the answer on top and the memories after the first `skip`."""
    blocks = await _blocks(commands, asker, answer, skip)
    try:
        await client.views_publish(user_id=user, view={"type": "home", "blocks": blocks})
    except API_ERRORS as error:
        log.warning("cannot show the App Home of %s: %s", user, error)


async def _blocks(commands: Commands, asker: Asker, answer: Answer | None, skip: int) -> list[Block]:
    forget_me = await commands.run("forget-me", asker)
    return [
        *([*answer_blocks(answer, MAX_PART), {"type": "divider"}] if answer else []),
        *_part("What I remember", await commands.press(asker, "more", str(skip))),
        *_part("Tasks", await commands.run("tasks", asker)),
        *_part("What I know of you", await commands.run("context", asker)),
        *_part("Your privacy", await commands.run("privacy", asker)),
        context("Only you see this page."),
        confirmed(forget_me.buttons[0], forget_me.text),
    ][:MAX_BLOCKS]


def _part(title: str, answer: Answer) -> list[Block]:
    blocks = answer_blocks(answer, MAX_PART)
    return [header(title), *(blocks[1:] if answer.items else blocks)]
