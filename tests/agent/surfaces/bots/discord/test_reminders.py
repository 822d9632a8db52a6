"""Reminders on Discord reach the right person in the right place."""

from datetime import timedelta
from typing import Any

from discord_server import ANA, BEN, DM, GENERAL, GUILD, DiscordServer
from scripted_server import ScriptedServer, answer

from agent import Companion
from memory.audience import PRIVATE, Place

WHO = f"discord:{ANA}"
SERVER = Place(("discord", str(GUILD)))
HERE = Place((*SERVER.path, str(GENERAL)))


async def due(
    pet: Companion, what: str = "call the dentist", user: str = WHO, place: Place = PRIVATE
) -> None:
    now = pet.clock()
    await pet.services.tasks.update(user, what, now=now - timedelta(days=1), due=now, place=place)


async def test_in_a_channel_a_reminder_pings_the_person_and_nobody_else(
    bot, pet: Companion, platform: DiscordServer
) -> None:
    await due(pet, f"tell <@{BEN}> and @everyone", place=HERE)
    assert await pet.reminders.run() == 1
    [posted] = platform.posted(GENERAL)
    assert posted.text.startswith(f"<@{ANA}> ")
    assert posted.pings == {str(ANA)}
    assert platform.shown(DM) == []


async def test_otherwise_it_is_a_direct_message(bot, pet: Companion, platform: DiscordServer) -> None:
    await due(pet)
    await due(pet, "buy tea", place=Place((*SERVER.path, "999")))
    await due(pet, "buy milk", place=SERVER)
    for user in ("slack:T1:U1", "discord:nobody"):
        await due(pet, user=user)
    assert await pet.reminders.run() == 3
    assert len(platform.shown(DM)) == len(platform.messages) == 3


async def test_if_direct_messages_are_closed_a_hint_comes_where_they_spoke_last(
    bot, pet: Companion, platform: DiscordServer, server: ScriptedServer, clock: Any
) -> None:
    platform.closed_dms.add(DM)
    await due(pet)
    assert await pet.reminders.run() == 0
    server.script(answer("Hello!"))
    await bot.hears(f"<@{bot.client.user.id}> hello", channel=GENERAL)
    clock.advance(minutes=5)
    assert await pet.reminders.run() == 1
    hint = platform.posted(GENERAL)[-1]
    assert "I have a reminder for you" in hint.text
    assert "dentist" not in hint.text
    assert hint.pings == {str(ANA)}
    await bot.client.leave()
    await due(pet)
    assert await pet.reminders.run() == 0
