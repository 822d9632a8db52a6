"""Commands and buttons, as Discord sends them."""

from itertools import count
from time import monotonic
from typing import Any

import pytest
from discord_server import ANA, BEN, DM, GENERAL, GROUP, GUILD, DiscordServer

from agent.surfaces.bots.commands import COMMANDS, LISTEN, REMEMBER_THIS
from hachi import Companion
from memory.audience import Place

HERE = Place(("discord", str(GUILD), str(GENERAL)))
WHO = f"discord:{ANA}"


async def ask(platform: DiscordServer, name: str, **given: Any) -> Any:
    return await platform.answered(await platform.command(name, **given))


async def press(platform: DiscordServer, on: Any, label: str, *, apart: bool = False, **given: Any) -> Any:
    return await platform.answered(await platform.press(on, label, **given), apart=apart)


async def test_discord_gets_the_commands_with_their_options(bot, platform: DiscordServer) -> None:
    registered = {command["name"]: command for command in platform.commands}
    assert registered.pop(LISTEN.name)["contexts"] == [0]
    for command in COMMANDS:
        sent = registered.pop(command.name)
        assert (sent["description"], sorted(sent["contexts"])) == (command.description, [0, 1])
        options = [(option["name"], option.get("required", False)) for option in sent["options"]]
        argument = command.argument
        assert options == ([(argument.name, argument.required)] if argument else [])
    assert registered.pop(REMEMBER_THIS)["type"] == 3
    assert registered == {}


async def test_a_message_is_remembered_from_its_menu(bot, pet, platform) -> None:
    said = platform.written("I live in Lyon", by=ANA, channel=GENERAL)
    told = await platform.answered(await platform.menu(REMEMBER_THIS, said))
    assert told.ephemeral
    assert told.text.startswith("Remembered, for everybody in this channel")
    assert [memory.content for memory in await pet.memories.list(user=WHO, place=HERE)] == ["I live in Lyon"]
    empty = platform.written("", by=ANA, channel=GENERAL)
    assert "no text" in (await platform.answered(await platform.menu(REMEMBER_THIS, empty))).text


async def test_commands_that_are_out_of_date_are_renewed(bot, platform) -> None:
    platform.commands = [*platform.commands[:2], platform.commands[2] | {"name": "recall", "options": []}]
    told = await ask(platform, "recall")
    assert "renewing the list" in told.text
    await platform.until(lambda: len(platform.commands) == len(COMMANDS) + 2)


async def test_only_who_asked_sees_the_memories_of_the_place(bot, pet, platform) -> None:
    await pet.remember("Ana likes *green* tea [here](http://a.example)", user=WHO, place=HERE)
    await pet.remember("Ana looks for another job", user=WHO)
    shown = await ask(platform, "memories", channel=GENERAL)
    assert shown.ephemeral
    assert "\\*green\\* tea \\[here\\](http" in shown.text
    assert "job" not in shown.text
    assert "-# What you told me in private" in shown.text
    private = await ask(platform, "memories", channel=DM)
    assert [button["label"] for button in private.buttons] == ["Forget 1", "Forget 2"]
    assert "tea" in (await ask(platform, "memories", channel=DM, query="what tea?")).text
    assert "somebody else" in (await press(platform, shown, "Forget 1", by=BEN)).text
    elsewhere = await ask(platform, "memories", channel=GROUP, context=2)
    assert "direct messages" in elsewhere.text
    assert len(await pet.memories.list(user=WHO)) == 2


async def test_of_two_processes_one_answers(bot, pet, platform, go_online, caplog) -> None:
    other = await go_online()
    await pet.remember("Ana lives in Lyon", user=WHO)
    shown = await ask(platform, "memories")
    assert "Lyon" in shown.text
    pressed = await platform.press(shown, "Forget 1")
    await platform.until(lambda: pressed.follow_ups)
    await ask(platform, "tasks")
    await other.client.leave()
    assert platform.refused == []
    assert len(pressed.follow_ups) == 1
    assert "broke" not in caplog.text


async def test_every_command_reaches_its_answer(bot, pet: Companion, platform: DiscordServer) -> None:
    assert "Ana lives in Lyon" in (await ask(platform, "remember", content="Ana lives in Lyon")).text
    await pet.tasks.update("call the dentist", user=WHO)
    tasks = await ask(platform, "tasks")
    assert (await press(platform, tasks, "Done 1", apart=True)).text == "Done: call the dentist"
    await pet.people.set_context("role", "nurse", user=WHO)
    assert "**role:** nurse" in (await ask(platform, "context")).text
    assert "**Who may read it:**" in (await ask(platform, "privacy")).text
    assert "Which one" in (await ask(platform, "forget", what="Lyon")).text
    assert "no trace" in (await ask(platform, "trace")).text


async def test_a_command_that_fails_is_answered_if_discord_still_takes_it(
    bot, platform: DiscordServer, caplog: pytest.LogCaptureFixture, monkeypatch
) -> None:
    platform.monotonic = count(0, 4).__next__  # each look is four seconds later
    asked = await platform.command("memories")
    await platform.until(lambda: len(platform.refused) >= 2)
    assert not asked.answered
    assert "10062" in caplog.text
    platform.monotonic = monotonic
    monkeypatch.setattr(bot.client.commands, "_handlers", {})
    failed = await ask(platform, "tasks")
    assert failed.text.startswith("Something broke on my side")
    assert "trace\\_" in failed.text
