"""The App Home."""

from typing import Any

from slack_server import SlackServer, buttons_of

from memory.audience import PRIVATE

ANA = "slack:T1:UANA"


async def opened(slack: SlackServer, user: str = "UANA") -> dict[str, Any]:
    await slack.deliver(
        slack.event({"type": "app_home_opened", "user": user, "channel": "D1", "tab": "home"})
    )
    await slack.until(lambda: user in slack.homes)
    return slack.homes[user]


async def press(slack: SlackServer, home: dict[str, Any], label: str) -> dict[str, Any]:
    pressed = next(one for one in buttons_of(home["blocks"]) if one["text"]["text"] == label)
    slack.homes.clear()
    await slack.deliver(slack.pressed(pressed, user="UANA", home=True))
    await slack.until(lambda: slack.homes)
    return slack.homes["UANA"]


async def test_the_home_shows_a_person_what_is_remembered_and_takes_it_away(bot, slack, pet, clock) -> None:
    for number, word in enumerate("tea rain bread chess Lyon rowing cats Bach snow".split()):
        clock.advance(minutes=1)
        await pet.remember(f"Fact {number}: Ana wrote about <!channel> & {word}", user=ANA)
    await pet.remember("Ben likes coffee", user="slack:T1:UBEN")
    await pet.components.tasks.update(ANA, "call the dentist", now=clock(), place=PRIVATE)
    await pet.people.set_context("name", "Ana", user=ANA)
    home = await opened(slack)
    assert "&lt;!channel&gt; &amp; snow" in str(home)
    assert "call the dentist" in str(home)
    assert "coffee" not in str(home)
    more = str((await press(slack, home, "More"))["blocks"][:3])
    assert ("tea" in more, "snow" in more) == (True, False)
    home = await press(slack, home, "Forget")
    assert "Forgotten: Fact 8" in str(home)
    home = await press(slack, home, "Undo")
    assert "I remember it again: Fact 8" in str(home)
    [erase] = [one for one in buttons_of(home["blocks"]) if one["text"]["text"] == "Forget me"]
    assert "cannot be undone" in erase["confirm"]["text"]["text"]
    await press(slack, home, "Forget me")
    assert await pet.memories.list(user=ANA) == []


async def test_a_memory_is_edited_from_the_home(bot, slack, pet) -> None:
    await pet.remember("Ana likes tea", user=ANA)
    home = await opened(slack)
    [edit] = [one for one in buttons_of(home["blocks"]) if one["text"]["text"] == "Edit"]
    await slack.deliver(slack.pressed(edit, user="UANA", home=True))
    await slack.until(lambda: slack.modals)
    slack.homes.clear()
    await slack.deliver(slack.filled_in("Ana likes coffee", user="UANA"))
    await slack.until(lambda: slack.homes)
    assert "Ana likes coffee" in str(slack.homes["UANA"]["blocks"][:2])
    assert [memory.content for memory in await pet.memories.list(user=ANA)] == ["Ana likes coffee"]

    slack.homes.clear()
    await slack.deliver(slack.pressed(edit | {"value": "0" * 36}, user="UANA", home=True))
    await slack.until(lambda: slack.homes)
    assert "not there any more" in str(slack.homes["UANA"]["blocks"][:2])


async def test_another_tab_and_a_home_that_slack_does_not_take_change_nothing(bot, slack, caplog) -> None:
    event = {"type": "app_home_opened", "user": "UANA", "channel": "D1"}
    await slack.deliver(slack.event(event | {"tab": "messages"}))
    slack.refused["views.publish"] = "not_enabled"
    await slack.deliver(slack.event(event | {"tab": "home"}))
    await slack.until(lambda: "cannot show the App Home of UANA" in caplog.text)
    slack.refused.clear()
    await opened(slack, "UBEN")
    assert "UANA" not in slack.homes
