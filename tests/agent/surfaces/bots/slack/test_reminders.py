"""Reminders on Slack reach the people of the workspace."""

from memory.audience import PRIVATE, Place


async def test_reminders_reach_people_while_the_bot_runs(go_online, slack, pet, clock) -> None:
    slack.closed = {"C2"}
    clock.advance(minutes=5)
    for what, user, path in (
        ("call the dentist", "slack:T1:UANA", ()),
        ("bring <!channel> cake", "slack:T1:UANA", ("slack", "T1", "C1", "1.5")),
        ("buy milk", "slack:T1:UANA", ("slack", "T1", "C2")),
        ("of another workspace", "slack:T2:UANA", ()),
    ):
        place = Place(path) if path else PRIVATE
        await pet.components.tasks.update(user, what, now=clock(), due=clock(), place=place)
    assert await pet.reminders.run() == 0
    await go_online()
    assert await pet.reminders.run() == 3
    assert "call the dentist" in slack.in_channel("DANA")[0].text
    assert len(slack.in_channel("DANA")) == 2
    [public] = slack.in_channel("C1", thread="1.5")
    assert public.text.startswith("<@UANA> ")
    assert "bring &lt;!channel&gt; cake" in public.text


async def test_closed_direct_messages_are_no_error(bot, slack, pet, clock) -> None:
    slack.closed = {"DANA"}
    await pet.components.tasks.update("slack:T1:UANA", "cake", now=clock(), due=clock(), place=PRIVATE)
    assert await pet.reminders.run() == 0
