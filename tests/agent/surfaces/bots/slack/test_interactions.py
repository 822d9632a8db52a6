"""Commands, buttons and the App Home: what is remembered, for the person it belongs to."""

from typing import Any

import pytest
from slack_server import SlackServer

from agent import Companion
from agent.surfaces.bots.commands import COMMANDS
from memory.audience import Place

DM, GENERAL = "D1", "C1"
ANA = "slack:T1:UANA"


@pytest.fixture
async def ask(bot: Any, slack: SlackServer) -> Any:
    """`await ask(payload)`: the answer that only who asked sees."""

    async def asked(payload: dict[str, Any]) -> dict[str, Any]:
        before = len(slack.responses)
        await slack.deliver(payload)
        await slack.until(lambda: len(slack.responses) > before)
        return slack.responses[-1]

    return asked


def buttons(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [block["accessory"] for block in answer["blocks"] if "accessory" in block] + [
        button for block in answer["blocks"] if block["type"] == "actions" for button in block["elements"]
    ]


@pytest.mark.parametrize("command", [f"/{command.name}" for command in COMMANDS])
async def test_every_command_answers_who_asked_only(ask: Any, slack: SlackServer, command: str) -> None:
    answer = await ask(slack.command(command, user="UANA"))
    assert answer["response_type"] == "ephemeral"
    assert answer["text"]


async def test_what_is_remembered_is_shown_with_buttons_to_forget_it(
    ask: Any, slack: SlackServer, pet: Companion
) -> None:
    for fact in ("Ana likes <!channel> & tea", "Ana lives in Lyon"):
        await pet.remember(fact, user=ANA)
    answer = await ask(slack.command("/memories", user="UANA"))
    assert "Ana likes &lt;!channel&gt; &amp; tea" in answer["text"]
    assert any("&lt;!channel&gt; &amp; tea" in str(block) for block in answer["blocks"])
    [lyon] = [block["accessory"] for block in answer["blocks"] if "Lyon" in block["text"]["text"]]
    gone = await ask(slack.pressed(lyon, user="UANA"))
    assert "Forgotten: Ana lives in Lyon" in gone["text"]
    assert gone["replace_original"] is False
    assert [memory.content for memory in await pet.memories(user=ANA)] == ["Ana likes <!channel> & tea"]


async def test_memories_are_found_by_words(ask: Any, slack: SlackServer, pet: Companion) -> None:
    for fact in ("Ana likes jasmine tea", "Ana lives in Lyon"):
        await pet.remember(fact, user=ANA)
    answer = await ask(slack.command("/memories", "jasmine tea", user="UANA"))
    assert "jasmine" in answer["text"]


async def test_more_memories_take_the_place_of_the_first_ones(
    ask: Any, slack: SlackServer, pet: Companion, clock: Any
) -> None:
    words = "tea rain bread chess Lyon rowing cats Bach snow mint".split()
    for number, word in enumerate(words):
        clock.advance(minutes=1)
        await pet.remember(f"Fact {number}: Ana wrote about {word} in letter {number}", user=ANA)
    first = await ask(slack.command("/memories", user="UANA"))
    [more] = [button for button in buttons(first) if button["text"]["text"] == "More"]
    second = await ask(slack.pressed(more, user="UANA"))
    assert second["replace_original"] is True
    assert "tea" in second["text"]
    assert "mint" not in second["text"]


async def test_in_a_channel_only_what_was_said_there_is_shown(
    ask: Any, slack: SlackServer, pet: Companion
) -> None:
    await pet.remember("Ana is looking for another job", user=ANA)
    await pet.remember("The release is on Friday", user=ANA, place="slack/T1/C1")
    answer = await ask(slack.command("/memories", user="UBEN", channel=GENERAL))
    assert "release" in answer["text"]
    assert "job" not in str(answer)


async def test_remembering_says_so_and_can_be_taken_back(
    ask: Any, slack: SlackServer, pet: Companion
) -> None:
    answer = await ask(slack.command("/remember", "<@UANA|ana> likes 1 &lt; 2", user="UANA"))
    assert "@ana likes 1 &lt; 2" in answer["text"]
    assert [memory.content for memory in await pet.memories(user=ANA)] == ["@ana likes 1 < 2"]
    undo, edit = buttons(answer)
    assert (undo["text"]["text"], edit["text"]["text"]) == ("Undo", "Edit")
    taken_back = await ask(slack.pressed(undo, user="UANA"))
    assert taken_back["replace_original"] is True
    assert await pet.memories(user=ANA) == []


@pytest.fixture
async def told(ask: Any, slack: SlackServer) -> dict[str, dict[str, Any]]:
    """Label → button of what Ana told in the channel."""
    answer = await ask(slack.command("/remember", "Ana has the flu", user="UANA", channel=GENERAL))
    return {button["text"]["text"]: button for button in buttons(answer)}


async def here(pet: Companion, user: str = "UBEN") -> list[str]:
    place = Place(("slack", "T1", GENERAL))
    return [memory.content for memory in await pet.memories(user=f"slack:T1:{user}", place=place)]


async def test_what_was_told_in_a_channel_is_edited_in_a_modal(
    ask: Any, slack: SlackServer, pet: Companion, told: dict[str, Any]
) -> None:
    await slack.deliver(slack.pressed(told["Edit"], user="UANA", channel=GENERAL))
    await slack.until(lambda: slack.modals)
    assert slack.modals["UANA"]["blocks"][0]["element"]["initial_value"] == "Ana has the flu"
    changed = await ask(slack.filled_in("Ana has the <!channel> measles", user="UANA"))
    assert "Ana has the &lt;!channel&gt; measles" in changed["text"]
    assert (changed["response_type"], changed["replace_original"]) == ("ephemeral", True)
    assert await here(pet) == ["Ana has the <!channel> measles"]
    undo = next(button for button in buttons(changed) if button["text"]["text"] == "Undo")
    assert "Ana has the flu" in (await ask(slack.pressed(undo, user="UANA", channel=GENERAL)))["text"]
    assert await here(pet) == ["Ana has the flu"]


async def test_a_modal_that_is_sent_after_a_restart_counts(
    bot: Any, go_online: Any, slack: SlackServer, pet: Companion, told: dict[str, Any]
) -> None:
    await slack.deliver(slack.pressed(told["Edit"], user="UANA", channel=GENERAL))
    await slack.until(lambda: slack.modals)
    await go_online()
    await slack.deliver(slack.filled_in("Ana is well", user="UANA"))
    await slack.until(lambda: len(slack.responses) == 2)
    assert await here(pet) == ["Ana is well"]


async def test_a_modal_without_words_says_so_and_stays(
    bot: Any, slack: SlackServer, pet: Companion, told: dict[str, Any]
) -> None:
    await slack.deliver(slack.pressed(told["Edit"], user="UANA", channel=GENERAL))
    await slack.until(lambda: slack.modals)
    sent = await slack.send(slack.filled_in("  ", user="UANA"))
    await slack.until(lambda: sent in slack.said_back)
    assert slack.said_back[sent]["response_action"] == "errors"
    assert await here(pet) == ["Ana has the flu"]


async def test_words_that_change_nothing_leave_the_receipt_as_it_is(
    ask: Any, slack: SlackServer, told: dict[str, Any]
) -> None:
    await slack.deliver(slack.pressed(told["Edit"], user="UANA", channel=GENERAL))
    await slack.until(lambda: slack.modals)
    answer = await ask(slack.filled_in("Ana has the flu", user="UANA"))
    assert answer["text"].startswith("Nothing was changed")
    assert answer["replace_original"] is False


async def test_what_was_told_in_a_channel_is_made_private(
    ask: Any, slack: SlackServer, pet: Companion, told: dict[str, Any]
) -> None:
    answer = await ask(slack.pressed(told["Make private"], user="UANA", channel=GENERAL))
    assert answer["text"].startswith("Between us now: Ana has the flu")
    assert (answer["response_type"], answer["replace_original"]) == ("ephemeral", True)
    assert await here(pet) == []
    assert [memory.content for memory in await pet.memories(user=ANA)] == ["Ana has the flu"]


@pytest.mark.parametrize("label", ["Undo", "Edit", "Make private"])
async def test_nobody_else_takes_it_back_or_changes_it(
    ask: Any, slack: SlackServer, pet: Companion, told: dict[str, Any], label: str
) -> None:
    answer = await ask(slack.pressed(told[label], user="UBEN", channel=GENERAL))
    assert "somebody else said it" in answer["text"]
    assert slack.modals == {}
    assert await here(pet) == ["Ana has the flu"]


async def test_a_modal_that_slack_does_not_show_breaks_nothing(
    ask: Any, slack: SlackServer, told: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    slack.refused["views.open"] = "expired_trigger_id"
    await slack.deliver(slack.pressed(told["Edit"], user="UANA", channel=GENERAL))
    await slack.until(lambda: "cannot show the modal" in caplog.text)
    assert (await ask(slack.command("/privacy", user="UANA")))["text"]


async def test_nobody_presses_anothers_button(ask: Any, slack: SlackServer, pet: Companion) -> None:
    await pet.remember("Ana likes tea", user=ANA)
    answer = await ask(slack.command("/memories", user="UANA"))
    await ask(slack.pressed(buttons(answer)[0], user="UBEN"))
    assert len(await pet.memories(user=ANA)) == 1


async def test_forgetting_by_words_asks_which_one(ask: Any, slack: SlackServer, pet: Companion) -> None:
    await pet.remember("Ana likes jasmine tea", user=ANA)
    answer = await ask(slack.command("/forget", "jasmine", user="UANA"))
    assert "Which one" in answer["text"]
    [forget] = buttons(answer)
    await ask(slack.pressed(forget, user="UANA"))
    assert await pet.memories(user=ANA) == []


async def test_forgetting_everything_asks_first(ask: Any, slack: SlackServer, pet: Companion) -> None:
    await pet.remember("Ana likes tea", user=ANA)
    answer = await ask(slack.command("/forget-me", user="UANA"))
    forget, keep = buttons(answer)
    kept = await ask(slack.pressed(keep, user="UANA"))
    assert kept["replace_original"] is True
    assert len(await pet.memories(user=ANA)) == 1
    gone = await ask(slack.pressed(forget, user="UANA"))
    assert "gone" in gone["text"]
    assert await pet.memories(user=ANA) == []


async def test_a_task_is_done_by_its_button(ask: Any, slack: SlackServer, pet: Companion) -> None:
    await pet.services.tasks.put(ANA, "call the dentist", now=pet.clock())
    answer = await ask(slack.command("/tasks", user="UANA"))
    done = await ask(slack.pressed(buttons(answer)[0], user="UANA"))
    assert "Done: call the dentist" in done["text"]


@pytest.mark.parametrize("allowed", ["admin", "creator"])
async def test_admins_and_whoever_made_a_channel_set_what_is_listened_to(
    ask: Any, slack: SlackServer, bot: Any, allowed: str
) -> None:
    if allowed == "admin":
        slack.admins.add("UANA")
    else:
        slack.creators[GENERAL] = "UANA"
    answer = await ask(slack.command("/listen", "Everything", user="UANA", channel=GENERAL))
    assert "everything" in answer["text"]
    assert await bot.hachi.places.listening(Place(("slack", "T1", GENERAL))) == "everything"


@pytest.mark.parametrize("refused", [{}, {"users.info": "fatal_error"}])
async def test_nobody_else_does(ask: Any, slack: SlackServer, bot: Any, refused: dict[str, str]) -> None:
    slack.refused |= refused
    answer = await ask(slack.command("/listen", "everything", user="UANA", channel=GENERAL))
    assert "may not" in answer["text"]
    assert await bot.hachi.places.listening(Place(("slack", "T1", GENERAL))) == "mentions"


async def test_everybody_may_ask_what_is_listened_to(ask: Any, slack: SlackServer) -> None:
    answer = await ask(slack.command("/listen", user="UANA", channel=GENERAL))
    assert "mentions me" in answer["text"]
    assert "one of" in (await ask(slack.command("/listen", "loudly", user="UANA", channel=GENERAL)))["text"]


async def test_an_answer_that_slack_does_not_take_breaks_nothing(
    bot: Any, slack: SlackServer, caplog: pytest.LogCaptureFixture
) -> None:
    command = slack.command("/privacy", user="UANA")
    for nowhere in (f"{slack.url}/nowhere", "http://127.0.0.1:1/nowhere"):
        await slack.deliver(command | {"response_url": nowhere})
    await slack.until(lambda: caplog.text.count("cannot show an answer") == 2)
    await slack.deliver(slack.command("/privacy", user="UANA"))
    await slack.until(lambda: slack.responses)


class TestHome:
    async def opened(self, slack: SlackServer, user: str = "UANA", tab: str = "home") -> dict[str, Any]:
        event = {"type": "app_home_opened", "user": user, "channel": DM, "tab": tab}
        await slack.deliver(slack.event(event))
        await slack.until(lambda: user in slack.homes)
        return slack.homes[user]

    async def test_the_home_shows_a_person_what_is_remembered_of_them(
        self, bot: Any, slack: SlackServer, pet: Companion
    ) -> None:
        await pet.remember("Ana likes <!channel> & tea", user=ANA)
        await pet.remember("Ben likes coffee", user="slack:T1:UBEN")
        await pet.services.tasks.put(ANA, "call the dentist", now=pet.clock())
        await pet.set_context("name", "Ana", user=ANA)
        shown = str(await self.opened(slack))
        assert "Ana likes &lt;!channel&gt; &amp; tea" in shown
        assert "call the dentist" in shown
        assert "coffee" not in shown

    async def test_a_memory_is_forgotten_from_there(
        self, bot: Any, slack: SlackServer, pet: Companion
    ) -> None:
        await pet.remember("Ana likes tea", user=ANA)
        home = await self.opened(slack)
        slack.homes.clear()
        await slack.deliver(slack.pressed(buttons(home)[0], user="UANA", home=True))
        await slack.until(lambda: slack.homes)
        assert "Forgotten: Ana likes tea" in str(slack.homes["UANA"])
        assert await pet.memories(user=ANA) == []

    async def test_more_memories_are_leafed_through(
        self, bot: Any, slack: SlackServer, pet: Companion, clock: Any
    ) -> None:
        for number, word in enumerate("tea rain bread chess Lyon rowing cats Bach snow".split()):
            clock.advance(minutes=1)
            await pet.remember(f"Fact {number}: Ana wrote about {word} in letter {number}", user=ANA)
        home = await self.opened(slack)
        [more] = [button for button in buttons(home) if button["text"]["text"] == "More"]
        slack.homes.clear()
        await slack.deliver(slack.pressed(more, user="UANA", home=True))
        await slack.until(lambda: slack.homes)
        shown = str(slack.homes["UANA"]["blocks"][:3])
        assert "tea" in shown
        assert "snow" not in shown

    async def test_forgetting_everything_is_asked_about_by_slack_itself(
        self, bot: Any, slack: SlackServer, pet: Companion
    ) -> None:
        await pet.remember("Ana likes tea", user=ANA)
        home = await self.opened(slack)
        [erase] = [button for button in buttons(home) if button["text"]["text"] == "Forget me"]
        assert "cannot be undone" in erase["confirm"]["text"]["text"]
        slack.homes.clear()
        await slack.deliver(slack.pressed(erase, user="UANA", home=True))
        await slack.until(lambda: slack.homes)
        assert await pet.memories(user=ANA) == []

    async def test_the_other_tab_shows_nothing(self, bot: Any, slack: SlackServer) -> None:
        event = {"type": "app_home_opened", "user": "UANA", "channel": DM, "tab": "messages"}
        await slack.deliver(slack.event(event))
        await self.opened(slack, "UBEN")
        assert "UANA" not in slack.homes

    async def test_a_home_that_slack_does_not_take_breaks_nothing(
        self, bot: Any, slack: SlackServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        slack.refused["views.publish"] = "not_enabled"
        await slack.deliver(slack.event({"type": "app_home_opened", "user": "UANA", "tab": "home"}))
        await slack.until(lambda: "cannot show the App Home of UANA" in caplog.text)
        slack.refused.clear()
        await self.opened(slack, "UBEN")
