"""Tasks that fall due are announced on Discord, to the right person in the right place."""

from datetime import timedelta
from typing import Any

import pytest
from discord_server import ANA, BEN, DM, GENERAL, GUILD, DiscordServer
from scripted_server import ScriptedServer, answer

from agent import Companion
from memory.audience import Place

WHO = f"discord:{ANA}"
HERE = Place(("discord", str(GUILD), str(GENERAL)))


async def due(pet: Companion, what: str = "call the dentist", user: str = WHO, place: str = "") -> None:
    """A task that is due now."""
    now = pet.clock()
    await pet.services.tasks.put(user, what, now=now - timedelta(days=1), due=now, place=place)


async def test_what_was_asked_for_in_private_is_announced_in_private(
    bot, pet: Companion, platform: DiscordServer
) -> None:
    await due(pet)
    assert await pet.reminders.run() == 1
    [text] = platform.shown(DM)
    assert "call the dentist" in text
    assert await pet.reminders.run() == 0


async def test_in_a_channel_it_pings_the_person_and_nobody_else(
    bot, pet: Companion, platform: DiscordServer
) -> None:
    await due(pet, f"tell <@{BEN}> and @everyone", place=HERE.key)
    assert await pet.reminders.run() == 1
    [posted] = platform.posted(GENERAL)
    assert posted.text.startswith(f"<@{ANA}> ")
    assert posted.pings == {str(ANA)}
    assert platform.shown(DM) == []


async def test_where_the_channel_is_gone_it_is_announced_in_private(
    bot, pet: Companion, platform: DiscordServer
) -> None:
    await due(pet, place=Place(("discord", str(GUILD), "999")).key)
    await due(pet, "buy milk", place=Place(("discord", str(GUILD))).key)
    assert await pet.reminders.run() == 2
    assert len(platform.shown(DM)) == 2


async def test_whose_direct_messages_are_closed_hears_where_they_spoke_last_that_there_is_something(
    bot, pet: Companion, platform: DiscordServer, server: ScriptedServer
) -> None:
    server.script(answer("Hello!"))
    await bot.hears(f"<@{bot.client.user.id}> hello", channel=GENERAL)
    platform.closed_dms.add(DM)
    await due(pet)
    assert await pet.reminders.run() == 1
    reply, posted = platform.posted(GENERAL)
    assert reply.text == "Hello!"
    assert "I have a reminder for you" in posted.text
    assert "dentist" not in posted.text
    assert posted.pings == {str(ANA)}


async def test_who_cannot_be_reached_at_all_is_tried_again_later(
    bot, pet: Companion, platform: DiscordServer, clock: Any
) -> None:
    platform.closed_dms.update((DM, GENERAL))
    await due(pet)
    assert await pet.reminders.run() == 0
    platform.closed_dms.clear()
    clock.advance(minutes=5)
    assert await pet.reminders.run() == 1


@pytest.mark.parametrize("user", ["slack:T1:U1", "discord:nobody"])
async def test_people_of_other_platforms_are_left_to_them(
    user: str, bot, pet: Companion, platform: DiscordServer
) -> None:
    await due(pet, user=user)
    assert await pet.reminders.run() == 0
    assert platform.messages == {}


async def test_a_bot_that_has_left_announces_nothing(bot, pet: Companion, platform: DiscordServer) -> None:
    await bot.client.leave()
    await due(pet)
    assert await pet.reminders.run() == 0
    assert platform.messages == {}
