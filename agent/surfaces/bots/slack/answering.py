"""Who asks, and how they are answered: for their eyes only."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from agent.surfaces.bots.answers import Answer
from agent.surfaces.bots.commands import Asker
from agent.surfaces.bots.slack.blocks import answer_blocks, plain_answer
from agent.surfaces.bots.slack.events import place_of, user_name
from agent.surfaces.bots.slack.people import FAULTS
from memory.audience import PRIVATE

log = logging.getLogger("hachi.slack")

Respond = Callable[..., Awaitable[Any]]


def asker_in(context: Any, channel: str | None) -> Asker:
    """Who asks, and where: in direct messages and in the App Home in private."""
    team = context.team_id or context.enterprise_id
    place = PRIVATE if not channel or channel.startswith("D") else place_of(team, channel)
    return Asker(user_name(team, context.user_id), place)


async def respond_with(respond: Respond, answer: Answer, *, replace: bool) -> None:
    """To the person alone; `replace` puts it in place of the message on which the button was."""
    try:
        sent = await respond(
            text=plain_answer(answer),
            blocks=answer_blocks(answer),
            response_type="ephemeral",
            replace_original=replace,
        )
    except FAULTS as error:
        log.warning("an answer is not shown: %s: %s", type(error).__name__, error)
    else:
        if sent.status_code != 200:
            log.warning("an answer is not shown: Slack says %s %s", sent.status_code, sent.body)
