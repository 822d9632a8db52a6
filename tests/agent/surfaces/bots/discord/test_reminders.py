"""Reminders on Discord reach the right person in the right place."""

from datetime import timedelta

from discord_server import ANA, BEN, DM, GENERAL, GUILD, DiscordServer

from agent import Companion
from memory.audience import PRIVATE, Place

SERVER = Place(("discord", str(GUILD)))


async def due(pet: Companion, what: str, place: Place = PRIVATE, user: str = f"discord:{ANA}") -> None:
    now = pet.clock()
    await pet.components.tasks.update(user, what, now=now - timedelta(days=1), due=now, place=place)


async def test_in_a_channel_a_reminder_pings_the_person_and_nobody_else(bot, pet, platform) -> None:
    await due(pet, f"tell <@{BEN}> and @everyone", Place((*SERVER.path, str(GENERAL))))
    assert await pet.reminders.run() == 1
    [posted] = platform.posted(GENERAL)
    assert posted.text.startswith(f"<@{ANA}> ")
    assert posted.pings == {str(ANA)}
    assert platform.shown(DM) == []


async def test_otherwise_it_is_a_direct_message(bot, pet: Companion, platform: DiscordServer) -> None:
    await due(pet, "call the dentist")
    await due(pet, "buy tea", Place((*SERVER.path, "999")))
    await due(pet, "buy milk", SERVER)
    for user in ("slack:T1:U1", "discord:nobody"):
        await due(pet, "cake", user=user)
    assert await pet.reminders.run() == 3
    assert len(platform.shown(DM)) == len(platform.messages) == 3
    platform.closed_dms.add(DM)
    await due(pet, "bring cake")
    assert await pet.reminders.run() == 0
    await bot.client.leave()
    platform.closed_dms.clear()
    assert await pet.reminders.run() == 0
