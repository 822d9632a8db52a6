"""A morning of two people and the bot on Discord: what they say, edit and forget, and what stands there."""

from typing import Any

from discord_server import ANA, BEN, BOT, DM, GENERAL, NAMES, DiscordServer
from scripted_server import Hang, ScriptedServer, answer

from agent.surfaces.bots import platform_jobs

AT = f"<@{BOT}>"
WAITING = "SELECT * FROM work WHERE kind IN ('answer', 'posts')"


async def test_what_is_edited_deleted_and_forgotten_on_discord_is_so_there_too(
    go_online: Any, platform: DiscordServer, server: ScriptedServer, pet: Any, clock: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(platform_jobs, "LOOK_SECONDS", 0.05)
    bot = await go_online()
    jobs, talks, user = bot.client.jobs, bot.client.conversations, f"discord:{ANA}"
    # Ana asks in the channel, and corrects herself: the reply is written again where it stands.
    server.script(answer("Two cups."), answer("Three cups."))
    asked = await bot.hears(f"{AT} tea for two", channel=GENERAL)
    await platform.edit(asked, f"{AT} tea for three", channel=GENERAL)
    await platform.until(lambda: platform.shown(GENERAL) == ["Three cups."])
    await talks.settle()
    assert "tea for two" not in server.asked[1].text
    # Ben talks to Ana, and adds a mention later.
    talk = await bot.hears("milk?", by=BEN, channel=GENERAL)
    server.script(answer("With milk."))
    await platform.edit(talk, f"{AT} milk?", channel=GENERAL)
    await platform.until(lambda: platform.shown(GENERAL) == ["Three cups.", "With milk."])
    await talks.settle()
    # Ana forgets it on a page of her own: the reply is deleted at once, and an undo does not post it again.
    [said] = [one for one in await pet.conversations.messages(user=user) if one.role == "user"]
    forgotten = await pet.conversations.forget(said.id, user=user)
    await jobs.do()  # or the bot itself just did
    await platform.until(lambda: platform.shown(GENERAL) == ["With milk."])
    await pet.memories.undo_forget(str(forgotten.undo_id), user=user)
    await jobs.do()
    assert platform.shown(GENERAL) == ["With milk."]
    # Ben deletes his question on Discord. The reply goes with it.
    await platform.delete(talk, channel=GENERAL)
    await platform.until(lambda: platform.shown(GENERAL) == [])


async def test_a_reply_that_is_deleted_while_it_is_written_does_not_return(
    bot: Any, platform: DiscordServer, server: ScriptedServer, rows: Any
) -> None:
    server.script(Hang('{"message": "Once upon a', 9))
    await platform.say("a story")
    await platform.until(lambda: platform.shown(DM))
    [half] = platform.posted(DM)
    half.deleted = True
    gone = {"ids": [str(half.id), "12"], "channel_id": str(DM)}
    await platform.send("MESSAGE_DELETE_BULK", gone)
    await bot.client.conversations.settle()
    assert platform.shown(DM) == []
    assert rows(WAITING) == []


async def test_two_people_of_one_name_are_told_apart_and_a_new_name_is_a_new_label(
    bot: Any, server: ScriptedServer, monkeypatch: Any
) -> None:
    monkeypatch.setitem(NAMES, BEN, "Ana")
    server.script(answer("Noted.", {"content": "Rex is a dog"}), *map(answer, ("Hello.", "Ben.", "Hi.")))
    for text, by in (("Rex is a dog", ANA), ("hello", BEN), (f"who is <@{BEN}>?", ANA)):
        await bot.hears(f"{AT} {text}", by=by, channel=GENERAL)
    other = f"Ana (discord {BEN})"
    said = [text for role, text in server.asked[-1].conversation if role == "user"]
    assert said == ["Ana: Rex is a dog", f"{other}: hello", f"Ana: who is @{other}?"]
    monkeypatch.setitem(NAMES, ANA, "Zoe")
    await bot.hears(f"{AT} it is me", by=ANA, channel=GENERAL)
    said = [text for role, text in server.asked[-1].conversation if role == "user"]
    assert said[::3] == ["Zoe: Rex is a dog", "Zoe: it is me"]


async def test_what_was_written_while_the_bot_was_not_there_is_caught_up(go_online, platform, server) -> None:
    server.script(answer("Hello."), answer("Hello, Ben."), answer("In private."))
    bot = await go_online()
    await bot.hears("hello", channel=DM)
    await bot.client.jobs.do()
    await bot.client.leave()
    platform.end()
    unreadable = platform.written(f"{AT} hello", channel=GENERAL)
    unreadable["attachments"] = "none of it can be read"
    platform.history[GENERAL] = [unreadable]
    await platform.say("lunch?", channel=GENERAL)
    await platform.say(f"{AT} hello", by=BEN, channel=GENERAL)
    missed = await platform.say("still there?", channel=DM)
    later = await go_online()
    await later.reached(missed)
    await later.client.conversations.settle()
    assert sorted(platform.shown(GENERAL) + platform.shown(DM)) == ["Hello, Ben.", "Hello.", "In private."]
