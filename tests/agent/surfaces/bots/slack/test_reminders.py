"""Reminders on Slack reach the people of the workspace."""

from collections.abc import Callable
from typing import Any

from slack_server import SlackServer

from agent import Companion
from memory.audience import Place

ANA = "slack:T1:UANA"


async def test_reminders_reach_people_while_the_bot_runs(
    go_online: Callable[..., Any], slack: SlackServer, pet: Companion, clock: Any
) -> None:
    tasks, there = pet.services.tasks, Place(("slack", "T1", "C1", "1.5"))
    clock.advance(minutes=5)
    await tasks.update(ANA, "call the dentist", now=clock(), due=clock())
    await tasks.update(ANA, "bring <!channel> cake", now=clock(), due=clock(), place=there)
    await tasks.update("slack:T2:UANA", "of another workspace", now=clock(), due=clock())
    assert await pet.reminders.run() == 0
    await go_online()
    assert await pet.reminders.run() == 2
    [private] = slack.in_channel("DANA")
    assert "call the dentist" in private.text
    [public] = slack.in_channel("C1", thread="1.5")
    assert public.text.startswith("<@UANA> ")
    assert "bring &lt;!channel&gt; cake" in public.text


async def test_a_closed_channel_or_closed_direct_messages_are_no_error(
    bot: Any, slack: SlackServer, pet: Companion, clock: Any
) -> None:
    slack.closed = {"C1", "DANA"}
    await pet.services.tasks.update(ANA, "cake", now=clock(), due=clock(), place=Place(("slack", "T1", "C1")))
    assert await pet.reminders.run() == 0
    slack.closed = {"C1"}
    clock.advance(hours=1)
    assert await pet.reminders.run() == 1
    assert len(slack.in_channel("DANA")) == 1
