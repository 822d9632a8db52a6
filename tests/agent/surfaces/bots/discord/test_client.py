"""What happens on Discord, as people see it. discord.py is the real one, the model scripted."""

from collections.abc import Callable
from typing import Any

import pytest
from discord_server import (
    ANA,
    ANOTHER_BOT,
    BEN,
    BOT,
    DM,
    GENERAL,
    GUILD,
    OTHER_DM,
    RANDOM,
    ROLE,
    DiscordServer,
    Posted,
    refusal,
    too_many,
)
from scripted_server import Call, Fail, Hang, ScriptedServer, answer

from agent import Companion
from agent.surfaces.bots.conversations import TOO_MANY
from memory.audience import Place
from memory.errors import StoreUnavailable

AT = f"<@{BOT}>"
THREAD = GENERAL + 1000
HERE = Place(("discord", str(GUILD), str(GENERAL)))
Rows = Callable[..., list[dict[str, Any]]]


async def test_a_direct_message_is_answered(bot, platform: DiscordServer, server: ScriptedServer) -> None:
    server.script(answer("Hello Ana!"))
    await bot.hears("hello", channel=DM)
    assert platform.shown(DM) == ["Hello Ana!"]
    assert platform.typed[DM] >= 1


async def test_in_a_channel_whoever_mentions_it_is_answered_with_a_reply_that_pings_nobody(
    bot, platform: DiscordServer, server: ScriptedServer, rows: Rows
) -> None:
    server.script(answer("Hello Ana!"))
    sent = await platform.say(f"{AT} hello", channel=GENERAL)
    await bot.reached(sent)
    await bot.client.conversations.settle()
    [reply] = platform.posted(GENERAL)
    assert reply.text == "Hello Ana!"
    assert int(reply.body["message_reference"]["message_id"]) == sent
    assert reply.body["message_reference"]["fail_if_not_exists"] is False
    assert reply.pings == set()
    assert server.asked[0].conversation[-1] == ("user", "Ana: hello")
    assert {row["place"] for row in rows("SELECT place FROM messages")} == {
        f"place:discord/{GUILD}/{GENERAL}"
    }
    assert {row["user_id"] for row in rows("SELECT user_id FROM messages")} == {f"discord:{ANA}"}


@pytest.mark.parametrize("text", [f"{AT}, hello", f"hello {AT}", f"<@&{ROLE}> hello", f"<@!{BOT}>: hello"])
async def test_it_is_called_by_its_name_or_its_role(
    text: str, bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    server.script(answer("Yes?"))
    await bot.hears(text, channel=GENERAL)
    assert server.asked[0].conversation[-1] == ("user", "Ana: hello")


async def test_names_stand_in_place_of_ids(bot, platform: DiscordServer, server: ScriptedServer) -> None:
    server.script(answer("Yes?"), answer("Yes!"))
    said = f"ask {AT} and <@{BEN}> and <@77> in <#{RANDOM}> or <#78> <:wave:5> <@&{ROLE}> <@&79> now"
    await bot.hears(said, channel=GENERAL)
    shown = "ask @Hachi and @Ben and @somebody in #random or #a channel :wave: @Hachi @a role now"
    assert server.asked[0].conversation[-1] == ("user", f"Ana: {shown}")
    await bot.hears(f"<#{RANDOM}> <@&{ROLE}> says @everyone", channel=DM)
    assert server.asked[1].text.endswith("#a channel @a role says @everyone")


async def test_a_mention_alone_is_answered(bot, platform: DiscordServer, server: ScriptedServer) -> None:
    server.script(answer("You called?"))
    await bot.hears(AT, channel=GENERAL)
    assert platform.shown(GENERAL) == ["You called?"]


async def test_what_is_not_addressed_to_it_is_neither_answered_nor_kept(
    bot, platform: DiscordServer, server: ScriptedServer, rows: Rows
) -> None:
    await bot.hears("hello Ben", channel=GENERAL)
    await bot.hears(f"<@{BEN}> hello @everyone", channel=GENERAL)
    assert (platform.posted(GENERAL), server.asked) == ([], [])
    assert rows("SELECT * FROM messages") == []
    assert rows("SELECT * FROM deliveries") == []


async def test_who_replies_to_it_is_answered(bot, platform: DiscordServer, server: ScriptedServer) -> None:
    server.script(answer("Hello!"), answer("I am fine."))
    await bot.hears(f"{AT} hello", channel=GENERAL)
    [first] = platform.posted(GENERAL)
    await bot.hears("how are you?", channel=GENERAL, **platform.reply_to(first))
    assert platform.shown(GENERAL) == ["Hello!", "I am fine."]


async def test_a_thread_is_a_place_of_its_own_in_its_channel(
    platform: DiscordServer, go_online, server: ScriptedServer, rows: Rows
) -> None:
    platform.threads[THREAD] = GENERAL
    bot = await go_online()
    server.script(answer("In here."))
    await bot.hears(f"{AT} hello", channel=THREAD)
    assert platform.shown(THREAD) == ["In here."]
    assert platform.shown(GENERAL) == []
    keys = {row["place"] for row in rows("SELECT place FROM messages")}
    assert keys == {f"place:discord/{GUILD}/{GENERAL}/{THREAD}"}


async def test_a_thread_that_was_not_told_of_is_asked_for(
    bot, platform: DiscordServer, server: ScriptedServer, rows: Rows
) -> None:
    platform.threads[THREAD] = GENERAL
    server.script(answer("In here."))
    await bot.hears(f"{AT} hello", channel=THREAD)
    keys = {row["place"] for row in rows("SELECT place FROM messages")}
    assert keys == {f"place:discord/{GUILD}/{GENERAL}/{THREAD}"}
    await bot.hears(f"{AT} hello", channel=999)
    assert len(server.asked) == 1


async def test_a_message_of_an_unknown_server_does_not_pass_for_a_private_one(
    platform: DiscordServer, go_online, server: ScriptedServer, rows: Rows
) -> None:
    platform.forget_guild = True
    bot = await go_online()
    server.script(answer("Hello!"))
    await bot.hears("hello", channel=GENERAL)
    await bot.hears(f"{AT} hello", channel=999)
    assert server.asked == []
    await bot.hears(f"{AT} hello", channel=GENERAL)
    assert platform.shown(GENERAL) == ["Hello!"]
    assert {row["place"] for row in rows("SELECT place FROM messages")} == {
        f"place:discord/{GUILD}/{GENERAL}"
    }


async def test_two_people_in_a_channel_and_their_direct_messages(
    bot, pet: Companion, platform: DiscordServer, server: ScriptedServer
) -> None:
    server.script(
        answer("Our secret.", {"content": "Ana looks for another job", "subjects": ["ana"]}),
        answer("Noted.", {"content": "Ana has a dog called Rex", "subjects": ["ana"]}),
        answer("She has a dog."),
    )
    await bot.hears("I am looking for another job", by=ANA, channel=DM)
    await bot.hears(f"{AT} my dog is called Rex", by=ANA, channel=GENERAL)
    await bot.hears(f"{AT} what do you know of Ana?", by=BEN, channel=GENERAL)
    assert "job" not in server.asked[1].text + server.asked[2].text
    assert ("user", "Ana: my dog is called Rex") in server.asked[2].conversation
    assert server.asked[2].conversation[-1] == ("user", "Ben: what do you know of Ana?")
    assert {m.content for m in await pet.memories(user=f"discord:{ANA}")} == {
        "Ana looks for another job",
        "Ana has a dog called Rex",
    }
    assert {m.content for m in await pet.memories(user=f"discord:{BEN}")} == set()
    assert platform.shown(DM)[0].startswith("Our secret.")
    assert platform.shown(OTHER_DM) == []


async def test_machines_are_not_answered(bot, platform: DiscordServer, server: ScriptedServer) -> None:
    for text in ("hello", f"{AT} hello"):
        await bot.hears(text, by=ANOTHER_BOT, channel=GENERAL)
        await bot.hears(text, by=BOT, channel=GENERAL)
        await bot.hears(text, channel=GENERAL, webhook_id="77")
    await bot.hears("hello", by=ANOTHER_BOT, channel=DM)
    await bot.hears(f"{AT}", channel=GENERAL, type=7)  # somebody joined
    assert (server.asked, platform.messages) == ([], {})


async def test_a_loop_with_a_machine_that_passes_for_a_person_ends(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    bot.client.conversations.turns_per_minute = 3
    server.script(*(answer("Indeed.") for _ in range(3)))
    for _ in range(8):
        last = platform.posted(GENERAL)[-1:]
        reply = platform.reply_to(last[0]) if last else {}
        await bot.hears(f"{AT} indeed?", channel=GENERAL, **reply)
    assert platform.shown(GENERAL) == ["Indeed.", "Indeed.", "Indeed.", TOO_MANY]


async def test_a_message_that_comes_twice_is_answered_once_also_after_a_restart(
    bot, platform: DiscordServer, go_online, server: ScriptedServer
) -> None:
    server.script(answer("Hello!"), answer("Here I am."))
    message = platform.written("hello")
    for _ in range(2):
        await platform.send("MESSAGE_CREATE", message)
    await bot.reached(int(message["id"]))
    await bot.client.conversations.settle()
    await bot.client.leave()
    again = await go_online()
    await platform.send("MESSAGE_CREATE", message)
    await again.hears("are you there?")
    assert platform.shown(DM) == ["Hello!", "Here I am."]
    assert server.asked[1].conversation[-1][1].endswith("are you there?")


async def test_what_was_missed_while_the_connection_was_down_is_answered(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    server.script(answer("one"), answer("two"), answer("three"))
    await bot.hears("first")
    await platform.drop()
    missed = await platform.say("second")
    await bot.reached(missed)
    await bot.client.conversations.settle()
    assert platform.shown(DM) == ["one", "two"]
    assert len(platform.resumed) == 1
    await platform.ask_to_reconnect()
    await platform.connected.wait()
    await bot.hears("third")
    assert platform.shown(DM) == ["one", "two", "three"]
    assert len(platform.identified) == 1


async def test_a_session_that_discord_ends_is_begun_anew(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    server.script(answer("one"), answer("two"))
    await bot.hears("first")
    await platform.invalidate()
    await platform.connected.wait()
    await bot.hears("second")
    assert platform.shown(DM) == ["one", "two"]
    assert (len(platform.identified), platform.resumed) == (2, [])
    assert not bot.running.done()


async def test_a_burst_keeps_its_order_and_is_one_turn(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    server.script(answer("Congratulations!"))
    bot.client.conversations.burst_seconds = 5.0
    for text in ("guess what", "I got the job"):
        await platform.say(text)
    await bot.reached(await platform.say("in Lyon!"))
    bot.client.conversations.burst_seconds = 0.02
    await platform.say("(said somewhere else)", by=BEN, channel=OTHER_DM)
    server.script(answer("?"))
    await platform.until(lambda: "Congratulations!" in platform.shown(DM))
    asked = next(asked for asked in server.asked if "guess what" in asked.text)
    assert asked.conversation[-1][1].endswith("guess what\nI got the job\nin Lyon!")
    await bot.client.conversations.settle()


async def test_a_reply_is_shown_while_it_is_written(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    server.script(Hang('{"message": "```py\\nprint(1)\\nprint(2)\\nprint(3)\\n', 6))
    await bot.reached(await platform.say("hello"))
    await platform.until(lambda: "print(2" in "".join(platform.shown(DM)))
    [shown] = platform.posted(DM)
    assert len(shown.texts) == 2
    assert all(text.startswith("```py\n") and text.endswith("\n```") for text in shown.texts)
    await bot.client.conversations.stop(0)


async def test_a_long_reply_comes_in_parts_that_discord_takes(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    text = "Here it is 👍:\n```py\n" + "print('é' * 40)  # שלום\n" * 200 + "```\n" + "That is all. " * 200
    server.script(answer(text))
    await bot.hears(f"{AT} a long one please", channel=GENERAL)
    parts = platform.posted(GENERAL)
    assert len(parts) > 3
    assert all(part.text.count("```") % 2 == 0 for part in parts)
    assert [bool(part.body.get("message_reference")) for part in parts] == [True] + [False] * (len(parts) - 1)
    assert "".join(part.text for part in parts).count("print(") == 200
    assert platform.refused == []


async def test_it_waits_where_discord_asks_for_it_and_tries_again_where_it_stumbles(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    faults = [too_many(0.01), refusal(502, 0, "Bad Gateway")]

    def stumble(method: str, path: str) -> Any:
        return faults.pop(0) if faults and (method, path) == ("POST", f"/channels/{DM}/messages") else None

    platform.faults.append(stumble)
    server.script(answer("Hello!"))
    await bot.hears("hello")
    assert platform.shown(DM) == ["Hello!"]
    assert faults == []


async def test_a_message_whose_answer_got_lost_is_not_posted_twice(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    platform.lost_answers = 1
    server.script(answer("Hello!"))
    await bot.hears("hello")
    assert platform.shown(DM) == ["Hello!"]
    assert len([call for call in platform.calls if call == ("POST", f"/channels/{DM}/messages")]) == 2


async def test_a_message_that_was_posted_before_the_connection_broke_is_taken_up_again(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    platform.lost_connections = 1
    server.script(Hang('{"message": "Hello there, how are you today', 6))
    await bot.reached(await platform.say("hello"))
    await platform.until(lambda: "how are you" in "".join(platform.shown(DM)))
    [posted] = platform.posted(DM)
    assert len(posted.texts) == 2
    await bot.client.conversations.stop(0)


async def test_what_was_shown_of_a_reply_that_failed_gives_way_to_what_went_wrong(
    open_pet: Any, go_online: Any, home: Any, platform: DiscordServer, server: ScriptedServer
) -> None:
    given = {"openai_base_url": server.url, "openai_api_key": "sk-test", "model": "tiny", "api": "chat"}
    pet = await open_pet(**given, look_back="off", model_retries=0, model_timeout=2.0)
    bot = await go_online(pet)
    server.script(Hang('{"message": "' + "word after word " * 150, 320))
    await bot.reached(await platform.say("hello"))
    await platform.until(lambda: len(platform.posted(DM)) == 2)
    last = platform.posted(DM)[-1]

    def taken_away(method: str, path: str) -> None:
        last.deleted |= method == "DELETE"

    platform.faults.append(taken_away)
    await bot.client.conversations.settle()
    [text] = platform.shown(DM)
    assert text.startswith("I can't think right now")
    assert [code for code, _ in platform.refused] == [10008]


async def test_where_it_may_not_write_it_goes_on_elsewhere(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    platform.closed_dms.add(GENERAL)
    platform.faults.append(lambda _, path: refusal(403, 50001, "no") if path.endswith("/typing") else None)
    server.script(answer("Hello?"), answer("Hello!"))
    await bot.hears(f"{AT} hello", channel=GENERAL)
    await bot.hears("hello", channel=DM)
    assert platform.shown(DM) == ["Hello!"]


async def test_a_reply_that_was_taken_away_meanwhile_is_posted_again(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    server.script(answer("Hello there, how are you?"))

    def taken_away(method: str, path: str) -> Any:
        if method == "POST" and path.endswith("/typing"):
            return None
        for posted in platform.posted(DM)[:1] if method == "PATCH" and not platform.refused else ():
            posted.deleted = True
        return None

    platform.faults.append(taken_away)
    await bot.hears("hello")
    assert platform.shown(DM) == ["Hello there, how are you?"]
    assert [code for code, _ in platform.refused] == [10008]


async def test_whoever_runs_into_a_fault_is_told_in_short(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    server.script(Fail(503, "rack 7 is on fire"))
    await bot.hears(f"{AT} hello", channel=GENERAL)
    [text] = platform.shown(GENERAL)
    assert "the model does not answer" in text
    assert "trace_" in text
    assert "rack" not in text


async def test_a_record_that_is_away_is_told_to_who_waits_for_an_answer_and_to_nobody_else(
    bot, pet: Companion, platform: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("/srv/hachi.db: the disk is full")

    monkeypatch.setattr(pet.components.database, "read", away)
    monkeypatch.setattr(pet.components.database, "write", away)
    await bot.hears("hello everybody", channel=GENERAL)
    await bot.hears(f"{AT} hello", channel=GENERAL)
    await bot.hears("hello", channel=DM)
    for texts in (platform.shown(GENERAL), platform.shown(DM)):
        [text] = texts
        assert text.startswith("I can't reach my memory")
        assert "srv" not in text
    platform.closed_dms.add(DM)
    await bot.hears("hello?", channel=DM)  # what cannot be told either is in the log
    assert len(platform.shown(DM)) == 1


async def test_an_everyone_stays_text(
    bot, pet: Companion, platform: DiscordServer, server: ScriptedServer
) -> None:
    said = f"@everyone and @here and <@{BEN}> must know"
    await pet.remember(f"{said}: Ana likes tea", user=f"discord:{ANA}", place=Place(("discord", str(GUILD))))
    server.script(answer(said, {"content": f"{said}: Ana has a dog"}))
    await bot.hears(f"{AT} hello", channel=GENERAL)
    [reply] = platform.posted(GENERAL)
    assert "@everyone" in reply.text
    assert reply.pings == set()
    listed = await platform.answered(await platform.command("memories", channel=GENERAL))
    assert "@everyone" in listed.text
    assert listed.pings == set()
    assert (reply.body["flags"], listed.body["flags"]) == (4, 68)  # nothing is fetched that a text links to


async def test_text_files_are_read_and_others_are_named(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    def attached(name: str, type: str | None, data: bytes | None, size: int | None = None) -> dict[str, Any]:
        if data is not None:
            platform.files[name] = data
        return {
            "id": str(len(name)),
            "filename": name,
            "content_type": type,
            "size": len(data or b"") if size is None else size,
            "url": f"http://{platform.address}/files/{name}",
            "proxy_url": f"http://{platform.address}/files/{name}",
        }

    files = [
        attached("notes.txt", "text/plain; charset=utf-8", "קנה חלב".encode()),
        attached("photo.png", "image/png", b"\x89PNG"),
        attached("big.log", "text/plain", b"x", 10_000_000),
        attached("latin.csv", None, b"caf\xe9"),
        attached("gone.md", None, None),
        attached("sixth.txt", "text/plain", b"never read"),
    ]
    server.script(answer("Milk."), answer("Two."), answer("Nothing."))
    await bot.hears("read this", attachments=files)
    asked = server.asked[0].text
    assert "[file notes.txt]\nקנה חלב\n[end of notes.txt]" in asked
    assert "photo.png (image/png, I read text only)" in asked
    assert "big.log (more than 64 kB)" in asked
    assert "latin.csv (no text in UTF-8)" in asked
    assert "gone.md (it could not be fetched)" in asked
    assert "sixth.txt (one too many)" in asked
    long = [attached(f"{name}.txt", "text/plain", name.encode() * 35_000) for name in "ab"]
    await bot.hears("", attachments=long)
    assert "b.txt (the files are too long together)" in server.asked[1].text


async def test_an_admin_has_it_listen_to_everything_or_to_nothing(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    from discord_server import MANAGES

    refused = await platform.answered(await platform.command("listen", channel=GENERAL, to="everything"))
    assert "you may not" in refused.text
    set_ = await platform.command("listen", channel=GENERAL, may=MANAGES, to="everything")
    assert "I answer everything" in (await platform.answered(set_)).text
    server.script(answer("Good morning!"))
    await bot.hears("good morning", channel=GENERAL)
    await bot.hears(f"<@{BEN}> how was it?", channel=GENERAL)
    await bot.hears("good morning", channel=RANDOM)
    assert (platform.shown(GENERAL), platform.shown(RANDOM)) == (["Good morning!"], [])
    await platform.answered(await platform.command("listen", channel=GENERAL, may=MANAGES, to="nothing"))
    await bot.hears(f"{AT} are you there?", channel=GENERAL)
    assert platform.shown(GENERAL) == ["Good morning!"]
    told = await platform.answered(await platform.command("listen", channel=GENERAL))
    assert told.text == "Here I answer nobody."


async def test_what_the_tool_remembered_has_a_receipt_with_undo(
    bot, pet: Companion, platform: DiscordServer, server: ScriptedServer
) -> None:
    flu = {"content": "Ana has the flu", "subjects": ["ana"], "ttl": "6d"}
    server.script(Call("remember", flu), answer("Get well soon!"))
    await bot.hears(f"{AT} I have the flu", channel=GENERAL)
    [reply] = platform.posted(GENERAL)
    assert reply.text == "Get well soon!\n\n-# Remembered until Friday: Ana has the flu"
    others = await platform.answered(await platform.press(reply, "Undo", by=BEN))
    assert "somebody else" in others.text
    assert others.ephemeral
    assert len(await pet.memories(user=f"discord:{ANA}")) == 1
    done = await platform.answered(await platform.press(reply, "Undo"))
    assert done.text == "Forgotten: Ana has the flu"
    assert done.ephemeral
    assert reply.buttons == []
    assert reply.text == "Get well soon!\n\n-# (forgotten)"
    assert await pet.memories(user=f"discord:{ANA}") == []


async def test_many_receipts_are_cut_short_and_each_has_its_button(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    facts = [{"content": f"Ana's locker {n} has the code {n}{n}{n}", "subjects": ["ana"]} for n in range(7)]
    server.script(answer("A lot of lockers. ```", *facts))
    await bot.hears("my lockers …")
    [reply] = platform.posted(DM)
    assert labels(reply) == [[f"Undo {n}", f"Edit {n}"] for n in range(1, 6)]
    assert reply.text.endswith("-# … and 2 more: /memories")
    assert reply.text.startswith("A lot of lockers. ```\n```\n\n-# Remembered: Ana's locker 0")
    await platform.answered(await platform.press(reply, "Undo 2"))
    assert labels(reply) == [[f"Undo {n}", f"Edit {n}"] for n in (1, 3, 4, 5)]
    assert reply.text.splitlines()[4:6] == [
        "-# (forgotten)",
        "-# Remembered: Ana's locker 2 has the code 222",
    ]


async def test_receipts_that_do_not_fit_below_a_reply_stand_together_with_their_buttons(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    notes = [f"Ana's locker {n} holds " + " ".join(f"thing{n}{m}" for m in range(28)) for n in range(5)]
    facts = [{"content": note, "subjects": ["ana"]} for note in notes]
    server.script(answer("Lockers, lockers. " * 36 + "That is all.", *facts))
    await bot.hears(f"{AT} my lockers …", channel=GENERAL)
    reply, below = platform.posted(GENERAL)
    assert reply.text.endswith("That is all.")
    await platform.answered(await platform.press(below, "Make private 1"))
    first, *others = below.text.splitlines()
    assert first == "-# (made private)"
    assert others == [f"-# Remembered: {note}" for note in notes[1:]]
    assert "locker 0" not in reply.text


def labels(posted: Posted) -> list[list[str]]:
    """Of its buttons, row by row."""
    return [[button["label"] for button in row["components"]] for row in posted.body["components"]]


async def receipt(
    bot: Any, platform: DiscordServer, server: ScriptedServer, channel: int = GENERAL
) -> Posted:
    """What Ana told is remembered, and the reply says so."""
    server.script(answer("Get well soon!", {"content": "Ana has the flu", "subjects": ["ana"]}))
    await bot.hears(f"{AT} I have the flu", channel=channel)
    return platform.posted(channel)[-1]


async def test_what_was_remembered_is_edited_by_who_told_it_alone(
    bot, pet: Companion, platform: DiscordServer, server: ScriptedServer
) -> None:
    reply = await receipt(bot, platform, server)
    others = await platform.answered(await platform.press(reply, "Edit", by=BEN))
    assert ("somebody else" in others.text, others.ephemeral) == (True, True)
    asked = await platform.press(reply, "Edit")
    sent = await platform.fill_in(asked, "Ana has the measles, not the @everyone flu")
    [entry] = [label["component"] for label in asked.modal["components"]]
    assert (entry["value"], entry["max_length"]) == ("Ana has the flu", 2_000)
    changed = await platform.answered(sent)
    assert changed.ephemeral
    assert "Ana has the measles" in changed.text
    assert changed.pings == set()
    assert (reply.text, reply.buttons) == ("Get well soon!\n\n-# (changed)", [])
    for where in ({"user": f"discord:{BEN}", "place": HERE}, {"user": f"discord:{ANA}"}):
        assert [m.content for m in await pet.memories(**where)] == [
            "Ana has the measles, not the @everyone flu"
        ]
    back = await platform.answered(await platform.press(changed, "Undo 1"))
    assert back.text == "Taken back. I hold on to: Ana has the flu"
    assert [m.content for m in await pet.memories(user=f"discord:{BEN}", place=HERE)] == ["Ana has the flu"]


async def test_words_that_change_nothing_leave_the_receipt_as_it_is(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    reply = await receipt(bot, platform, server)
    before = reply.text
    told = await platform.answered(
        await platform.fill_in(await platform.press(reply, "Edit"), "Ana has the flu")
    )
    assert told.text.startswith("Nothing was changed")
    assert (reply.text, labels(reply)) == (before, [["Undo", "Edit", "Make private"]])


async def test_what_is_gone_is_not_edited(
    bot, pet: Companion, platform: DiscordServer, server: ScriptedServer
) -> None:
    reply = await receipt(bot, platform, server)
    [memory] = await pet.memories(user=f"discord:{ANA}")
    await pet.delete_memory(memory.id, user=f"discord:{ANA}")
    told = await platform.answered(await platform.press(reply, "Edit"))
    assert "not there any more" in told.text
    assert told.ephemeral


async def test_what_was_told_in_a_channel_is_made_private_by_who_told_it_alone(
    bot, pet: Companion, platform: DiscordServer, server: ScriptedServer
) -> None:
    reply = await receipt(bot, platform, server)
    others = await platform.answered(await platform.press(reply, "Make private", by=BEN))
    assert "somebody else" in others.text
    assert len(await pet.memories(user=f"discord:{BEN}", place=HERE)) == 1
    done = await platform.answered(await platform.press(reply, "Make private"))
    assert done.ephemeral
    assert done.text.startswith("Between us now: Ana has the flu")
    assert (reply.text, reply.buttons) == ("Get well soon!\n\n-# (made private)", [])
    assert await pet.memories(user=f"discord:{BEN}", place=HERE) == []
    assert [m.content for m in await pet.memories(user=f"discord:{ANA}")] == ["Ana has the flu"]
    assert platform.refused == []


async def test_in_private_there_is_nothing_to_make_private(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    assert labels(await receipt(bot, platform, server, DM)) == [["Undo", "Edit"]]
