"""Commands and buttons, as Discord sends them."""

import asyncio
from typing import Any

import pytest
from discord_server import ANA, BEN, DM, GENERAL, GROUP, GUILD, DiscordServer

from agent import Companion
from agent.surfaces.bots.answers import Answer
from memory.audience import Place

HERE = Place(("discord", str(GUILD), str(GENERAL)))
WHO = f"discord:{ANA}"


async def ask(platform: DiscordServer, name: str, **given: Any) -> Any:
    return await platform.answered(await platform.command(name, **given))


async def test_discord_is_told_of_the_commands(bot, platform: DiscordServer) -> None:
    names = {command["name"] for command in platform.commands}
    assert names == {
        "memories",
        "remember",
        "forget",
        "forget-me",
        "privacy",
        "tasks",
        "context",
        "trace",
        "listen",
    }
    contexts = {command["name"]: command["contexts"] for command in platform.commands}
    assert contexts.pop("listen") == [0]
    assert set(map(tuple, contexts.values())) == {(0, 1)}


async def test_only_who_asked_sees_what_is_remembered(bot, pet: Companion, platform: DiscordServer) -> None:
    await pet.remember("Ana likes *green* tea [here](http://a.example)", user=WHO, place=HERE)
    await pet.remember("Ana looks for another job", user=WHO)
    shown = await ask(platform, "memories", channel=GENERAL)
    assert shown.ephemeral
    assert "\\*green\\* tea" in shown.text
    assert "\\[here\\](http" in shown.text
    assert "job" not in shown.text
    assert "-# What you told me in private" in shown.text
    private = await ask(platform, "memories", channel=DM)
    assert private.ephemeral
    assert {button["label"] for button in private.buttons} == {"Forget 1", "Forget 2"}
    assert "tea" in (await ask(platform, "memories", channel=DM, query="what tea?")).text


async def test_a_memory_is_taken_away_with_its_button(
    bot, pet: Companion, platform: DiscordServer, clock: Any
) -> None:
    await pet.remember("Ana plays the cello", user=WHO)
    clock.advance(minutes=1)
    await pet.remember("Ana lives in Lyon", user=WHO)
    shown = await ask(platform, "memories")
    gone = await platform.answered(await platform.press(shown, "Forget 1"))
    assert gone.text == "Forgotten: Ana lives in Lyon"
    assert [button["label"] for button in shown.buttons] == ["Forget 2"]
    assert [memory.content for memory in await pet.memories(user=WHO)] == ["Ana plays the cello"]


async def test_a_long_list_is_leafed_through_in_place(bot, pet: Companion, platform: DiscordServer) -> None:
    for number in range(10):
        await pet.remember(f"Ana's locker {number} has the code {number}{number}: {'long ' * 60}", user=WHO)
    shown = await ask(platform, "memories")
    assert len(shown.buttons) == 9
    first = shown.text
    turned = await platform.press(shown, "More")
    await platform.answered(turned)
    assert shown.text != first
    assert turned.follow_ups == []
    assert len(shown.buttons) == 2
    assert platform.refused == []


async def test_remember_forget_context_tasks_and_privacy(
    bot, pet: Companion, platform: DiscordServer
) -> None:
    assert "Ana lives in Lyon" in (await ask(platform, "remember", content="Ana lives in Lyon")).text
    await pet.services.tasks.put(WHO, "call the dentist", now=pet.clock())
    tasks = await ask(platform, "tasks")
    assert "call the dentist" in tasks.text
    done = await platform.answered(await platform.press(tasks, "Done 1"))
    assert done.text == "Done: call the dentist"
    await pet.set_context("role", "nurse", user=WHO)
    assert "**role:** nurse" in (await ask(platform, "context")).text
    assert "**Who may read it:**" in (await ask(platform, "privacy")).text
    assert "Which one" in (await ask(platform, "forget", what="Lyon")).text


async def test_forget_me_takes_everything_away_once_confirmed(
    bot, pet: Companion, platform: DiscordServer
) -> None:
    await pet.remember("Ana lives in Lyon", user=WHO)
    asked = await ask(platform, "forget-me")
    assert [button["style"] for button in asked.buttons] == [4, 2]
    await platform.answered(await platform.press(asked, "Keep it"))
    assert (asked.text, asked.buttons) == ("All right, nothing was changed.", [])
    asked = await ask(platform, "forget-me")
    await platform.answered(await platform.press(asked, "Forget me"))
    assert "is gone" in asked.text
    assert asked.buttons == []
    assert await pet.memories(user=WHO) == []


async def test_a_slow_answer_is_announced_within_the_time_discord_allows(
    bot, platform: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    acknowledged = asyncio.Event()

    async def slow(*_: Any) -> Answer:
        await acknowledged.wait()
        return Answer("It took a while.")

    monkeypatch.setitem(bot.client.commands._handlers, "memories", slow)
    asked = await platform.command("memories")
    await platform.until(lambda: asked.answered)
    assert (asked.answered, asked.ephemeral) == ("thinking", True)
    acknowledged.set()
    assert (await platform.answered(asked)).text == "It took a while."


async def test_what_comes_too_late_is_logged_and_no_more(
    bot, platform: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    platform.late = True
    asked = await platform.command("memories")
    await platform.until(lambda: len(platform.refused) >= 2)
    assert not asked.answered
    platform.late = False
    assert "nothing" in (await ask(platform, "memories")).text
    assert "10062" in caplog.text


async def test_what_breaks_inside_is_told_in_short(
    bot, platform: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bot.client.commands, "_handlers", {})
    told = await ask(platform, "tasks")
    assert told.text.startswith("Something broke on my side")
    assert "trace_" in told.text


async def test_in_groups_of_others_it_tells_nothing(bot, pet: Companion, platform: DiscordServer) -> None:
    await pet.remember("Ana looks for another job", user=WHO)
    told = await ask(platform, "memories", channel=GROUP, context=2)
    assert "direct messages" in told.text
    assert "job" not in told.text


async def test_a_button_of_before_a_restart_still_works(
    bot, pet: Companion, platform: DiscordServer, go_online: Any
) -> None:
    await pet.remember("Ana lives in Lyon", user=WHO)
    shown = await ask(platform, "memories")
    await bot.client.leave()
    await go_online()
    gone = await platform.answered(await platform.press(shown, "Forget 1"))
    assert gone.text == "Forgotten: Ana lives in Lyon"


async def test_a_button_is_of_no_use_to_others(bot, pet: Companion, platform: DiscordServer) -> None:
    await pet.remember("Ana lives in Lyon", user=WHO, place=HERE)
    shown = await ask(platform, "memories", channel=GENERAL)
    told = await platform.answered(await platform.press(shown, "Forget 1", by=BEN))
    assert "somebody else" in told.text
    assert len(await pet.memories(user=WHO)) == 1
