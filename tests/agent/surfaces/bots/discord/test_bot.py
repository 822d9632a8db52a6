"""Which messages on Discord are answered, and where. discord.py is the real one, the model scripted."""

import asyncio
from collections.abc import Callable
from io import BytesIO
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
    MANAGES,
    RANDOM,
    ROLE,
    TEMPLATES,
    DiscordServer,
)
from PIL import Image
from scripted_server import ScriptedServer, answer

from agent.surfaces.bots.attachments.read import AttachmentReader
from agent.surfaces.bots.attachments.transcriber import Transcriber
from agent.surfaces.bots.discord.bot import Allowed
from agent.surfaces.bots.turns import REFUSED
from agent.tracing.store.filters import TraceFilter
from hachi import Companion
from memory.errors import StoreUnavailable

AT = f"<@{BOT}>"
THREAD = GENERAL + 1000
Rows = Callable[..., list[dict[str, Any]]]


async def test_direct_messages_and_mentions_are_answered_and_a_reply_pings_nobody(
    bot, platform: DiscordServer, server: ScriptedServer, rows: Rows
) -> None:
    server.script(answer("Hello Ana!"), answer("In private."))
    sent = await bot.hears(f"{AT} hello", channel=GENERAL)
    [reply] = platform.posted(GENERAL)
    assert (reply.text, reply.pings) == ("Hello Ana!", set())
    assert int(reply.body["message_reference"]["message_id"]) == sent
    assert reply.body["message_reference"]["fail_if_not_exists"] is False
    assert server.asked[0].conversation[-1] == ("user", "Ana: hello")
    assert "\nWhere: #general in A server, where others" in server.asked[0].context
    stored = {(row["place"], row["user_id"]) for row in rows("SELECT place, user_id FROM messages")}
    assert stored == {(f"place:discord/{GUILD}/{GENERAL}", f"discord:{ANA}")}
    await bot.hears("hello", channel=DM)
    assert platform.shown(DM) == ["In private."]
    assert platform.typed[DM] >= 1


async def test_the_bot_is_called_by_its_name_its_role_or_a_reply_and_the_model_reads_names(
    bot, platform, server
) -> None:
    for text in (f"{AT}, hello", f"<@&{ROLE}> hello", f"<@!{BOT}>: hello"):
        server.script(answer("Yes?"))
        await bot.hears(text, channel=GENERAL)
        assert server.asked[-1].conversation[-1] == ("user", "Ana: hello")
    server.script(answer("I am fine."), answer("Yes?"), answer("Yes!"))
    await bot.hears("how are you?", channel=GENERAL, **platform.reply_to(platform.posted(GENERAL)[-1]))
    assert platform.shown(GENERAL)[-1] == "I am fine."
    text = f"ask {AT} and <@{BEN}> and <@77> in <#{RANDOM}> or <#78> <:wave:5> <@&{ROLE}> <@&79> now"
    await bot.hears(text, channel=GENERAL)
    readable = "ask @Hachi and @Ben and @somebody in #random or #a channel :wave: @Hachi @a role now"
    assert server.asked[-1].conversation[-1] == ("user", f"Ana: {readable}")
    await bot.hears(f"<#{RANDOM}> <@&{ROLE}> says @everyone", channel=DM)
    assert server.asked[-1].text.endswith("#a channel @a role says @everyone")


POLL = {"question": {"text": "Lunch?"}, "answers": [{"answer_id": 1, "poll_media": {"text": "Soup"}}]}
POLL |= {"expiry": "2030-01-01T00:00:00+00:00", "allow_multiselect": False, "layout_type": 1}
EMBED = {"type": "rich", "title": "Build failed", "fields": [{"name": "on", "value": "main"}]}
TEXTS = {"type": 17, "components": [{"type": 10, "content": "*Deploy* is done"}]}
FORWARDED = TEMPLATES["message"] | {"type": 0, "content": "", "embeds": [EMBED]}


@pytest.mark.parametrize(
    ("held", "shown"),
    [
        ({"content": f"<@{ANA}> and I like *tea*"}, "@Ana and I like *tea*"),
        ({"content": "see <t:1893456000:R> </ask:7> <id:guide>"}, "see 2030-01-01 00:00 UTC /ask #guide"),
        ({"attachments": ["plan.pdf"]}, "(file: plan.pdf)"),
        ({"embeds": [EMBED]}, "(embed: Build failed; on; main)"),
        ({"poll": POLL}, "(poll: Lunch?; Soup)"),
        ({"components": [TEXTS]}, "(shown: *Deploy* is done)"),
        (
            {"message_snapshots": [{"message": FORWARDED}]},
            "(forwarded, not written by the sender: “(embed: Build failed; on; main)”)",
        ),
    ],
)
async def test_what_one_replies_to_is_shown_in_words_to_the_model_and_not_kept_as_the_senders(
    bot: Any, platform: DiscordServer, server: ScriptedServer, held: dict[str, Any], shown: str
) -> None:
    server.script(answer("I think so too."))
    if files := held.get("attachments"):
        held = {"attachments": [platform.attach(name, "application/pdf", b"") for name in files]}
    mentions = platform.written(held.get("content", ""))["mentions"]
    said = platform.written("", by=BEN, channel=GENERAL, mentions=mentions)
    said |= held
    reference = {"message_id": said["id"], "channel_id": str(GENERAL)}
    replied = {"referenced_message": said, "type": 19, "message_reference": reference}
    await bot.hears(f"{AT} :tada: what do you think?", channel=GENERAL, **replied)
    assert "## What the message replies to\n" in server.asked[0].context
    assert f"\n> Ben: {shown}\n" in server.asked[0].context
    assert server.asked[0].conversation[-1] == ("user", "Ana: :tada: what do you think?")


@pytest.mark.parametrize("is_post", [True, False], ids=["a forum's post", "a thread"])
async def test_who_calls_it_in_a_thread_of_others_has_it_read_from_its_title_and_first_message_on(
    go_online: Any, platform: DiscordServer, server: ScriptedServer, rows: Rows, is_post: bool
) -> None:
    platform.threads[THREAD] = GENERAL
    platform.forums = {GENERAL} if is_post else set()
    bot = await go_online()
    await platform.send("THREAD_CREATE", platform._channel(THREAD))
    where = THREAD if is_post else GENERAL
    first = platform.written("Where do we eat?", by=BEN, channel=where, id=str(THREAD))
    platform.history[where] = [first]
    for number in range(60):
        await platform.say(f"no {number}", by=BEN, channel=THREAD)
    server.script(answer("Ben asks where to eat."), answer("As I said."))
    await bot.hears(f"{AT} summarise this thread", channel=THREAD)
    shown = server.asked[0].context
    assert "> The thread is called “a thread”.\n> Before it in the thread:\n> Ben: " in shown
    assert "> Where do we eat?" in shown.replace("Ben: ", "")
    assert ("> Ben: no 59\n" in shown, "> Ben: no 3\n" in shown) == (True, False)
    await bot.hears("and now?", channel=THREAD)
    assert "Ben asks where to eat." not in server.asked[1].context, "what was said to it is in the transcript"
    assert "no 59" not in str(rows("SELECT text FROM messages"))


async def test_a_thread_is_a_place_that_goes_on_without_mentions_until_people_talk_to_each_other(
    bot, platform, server, rows
) -> None:
    platform.threads[THREAD] = GENERAL
    await platform.send("THREAD_CREATE", platform._channel(THREAD))
    server.script(*map(answer, ("Tea is ready.", "Here you are.")))
    await bot.hears("lunch?", channel=THREAD, id=str(THREAD))  # a forum's post
    platform.history[THREAD].append(platform.written("", channel=THREAD, author="nobody can read this"))
    await bot.hears(f"{AT} tea?", channel=THREAD)
    await bot.hears("with milk", channel=THREAD)
    for text, by in (("I want some too", BEN), ("so do I", ANA)):
        await bot.hears(text, by=by, channel=THREAD)
    assert platform.shown(THREAD) == ["Tea is ready.", "Here you are."]
    places = {row["place"] for row in rows("SELECT place FROM messages")}
    assert places == {f"place:discord/{GUILD}/{GENERAL}/{THREAD}"}


async def test_other_messages_are_neither_answered_nor_kept(bot, platform, server, rows) -> None:
    await bot.hears("hello Ben", channel=GENERAL)
    await bot.hears(f"<@{BEN}> hello @everyone", channel=GENERAL)
    for text in ("hello", f"{AT} hello"):
        await bot.hears(text, by=ANOTHER_BOT, channel=GENERAL)
        await bot.hears(text, by=BOT, channel=GENERAL)
        await bot.hears(text, channel=GENERAL, webhook_id="77")
    await bot.hears("hello", by=ANOTHER_BOT, channel=DM)
    await bot.hears(AT, channel=GENERAL, type=7)  # somebody joined
    assert (platform.messages, server.asked) == ({}, [])
    assert rows("SELECT * FROM messages") == rows("SELECT * FROM work") == []


async def test_a_message_of_an_unknown_server_does_not_count_as_private(
    platform: DiscordServer, go_online, server: ScriptedServer, rows: Rows
) -> None:
    platform.forget_guild = True
    bot = await go_online()
    server.script(answer("Hello!"))
    for text, channel in (("hello", GENERAL), (f"{AT} hello", 999), (f"{AT} hello", GENERAL)):
        await bot.hears(text, channel=channel)
    assert (len(server.asked), platform.shown(GENERAL)) == (1, ["Hello!"])
    places = {row["place"] for row in rows("SELECT place FROM messages")}
    assert places == {f"place:discord/{GUILD}/{GENERAL}"}


async def test_messages_keep_their_order_and_attachments_are_fetched(bot, platform, server) -> None:
    files = [
        platform.attach("notes.txt", "text/plain; charset=utf-8", "קנה חלב".encode()),
        platform.attach("photo.png", "image/png", b"\x89PNG"),
        platform.attach("gone.md", None, None),
    ]
    server.script(answer("Congratulations!"))
    bot.client.conversations.burst_seconds = 0.1
    for text in ("guess what", "I got the job"):
        await platform.say(text)
    await bot.hears("in Lyon!", attachments=files)
    [(_, asked)] = server.asked[0].conversation
    assert "guess what\nI got the job\nin Lyon!" in asked
    assert "[file notes.txt]\nקנה חלב\n[end of notes.txt]" in asked
    assert "[picture photo.png]" in asked
    assert "[file gone.md; not read: it could not be fetched]" in asked
    assert "_gone.md: it could not be fetched._" in platform.shown(DM)[0]


async def test_pictures_that_are_attached_forwarded_or_replied_to_are_seen(
    go_online, open_pet, platform, server
) -> None:
    given = {"openai_base_url": server.url, "openai_api_key": "k", "model": "tiny", "api": "chat"}
    bot = await go_online(await open_pet(**given, images=True, consolidate="plain"))
    out = BytesIO()
    Image.new("RGB", (8, 8), "red").save(out, "PNG")
    mine, theirs, first = (platform.attach(f"{name}.png", "image/png", out.getvalue()) for name in "abc")
    shot = platform.written("look", by=BEN) | {"attachments": [theirs]}
    boat = platform.written("our boat", by=BEN, channel=GENERAL) | {"attachments": [first]}
    server.script(answer("Three pictures."))
    await bot.hears(
        f"{AT} what is that?",
        channel=GENERAL,
        attachments=[mine],
        type=19,
        message_reference={"message_id": boat["id"], "channel_id": str(GENERAL)},
        referenced_message=boat,
        message_snapshots=[{"message": shot}],
    )
    content = server.asked[0].json["messages"][-1]["content"]
    assert sum("image_url" in part for part in content) == 3
    assert sorted(platform.fetched) == ["a.png", "b.png", "c.png"]


async def test_a_voice_message_says_its_words(bot, platform, server, monkeypatch) -> None:
    async def hear(*_: Any) -> tuple[str, None]:
        return "Remind me to buy milk.", None

    monkeypatch.setattr(Transcriber, "hear", hear)
    bot.client.conversations._turns.reader.files = AttachmentReader(
        Transcriber("m", "http://a.test", "k", 1.0)
    )
    voice = platform.attach("voice-message.ogg", "audio/ogg", b"OggS") | {
        "duration_secs": 3.6,
        "waveform": "AA==",
    }
    server.script(answer("I will."))
    await bot.hears("", attachments=[voice], flags=1 << 13)
    assert server.asked[0].conversation == [("user", "(spoken, 0:04) Remind me to buy milk.")]


async def test_a_channel_listens_to_what_its_manager_sets(bot, platform, server) -> None:
    async def listen(to: str, **given: Any) -> str:
        command = await platform.command("listen", channel=GENERAL, to=to, **given)
        return str((await platform.answered(command)).text)

    assert "Only people who manage" in await listen("everything")
    assert platform.shown(GENERAL) == []
    told = await listen("everything", may=MANAGES)
    assert told.startswith("Ana has set: Here I answer every message")
    assert platform.shown(GENERAL) == [told], "everybody there sees it"
    server.script(answer("Good morning!"))
    for text, channel in (("good morning", GENERAL), (f"<@{BEN}> how was it?", GENERAL), ("hi", RANDOM)):
        await bot.hears(text, channel=channel)
    assert (platform.shown(GENERAL)[1:], platform.shown(RANDOM)) == (["Good morning!"], [])


async def test_if_the_database_is_away_for_long_only_those_who_wait_for_an_answer_learn_of_it(
    bot, pet: Companion, platform: DiscordServer, monkeypatch, clock
) -> None:
    def away(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("/srv/hachi.db: the disk is full")

    for method in ("read", "write"):
        monkeypatch.setattr(pet.components.database, method, away)
    await bot.hears("hello everybody", channel=GENERAL)
    await bot.hears(f"{AT} hello", channel=GENERAL)
    await bot.hears("hello", channel=DM)
    assert platform.messages == {}
    clock.advance(seconds=30)
    await bot.client.conversations.tell_failed()
    await platform.until(lambda: platform.shown(GENERAL) and platform.shown(DM))  # its jobs may tell, too
    for [text] in (platform.shown(GENERAL), platform.shown(DM)):
        assert text.startswith("I can't reach my memory")
        assert "srv" not in text


async def test_a_message_that_cannot_be_read_ends_no_catching_up(bot, platform, server, monkeypatch) -> None:
    unreadable = platform.written(f"{AT} hello", channel=GENERAL)
    del unreadable["author"]
    platform.history[GENERAL], platform.last_messages[GENERAL] = [unreadable], int(unreadable["id"])
    receive = bot.client.conversations.receive

    async def received(message: Any, listening: Any) -> None:
        assert message.origin != f"discord:{RANDOM}:{broken}"
        await receive(message, listening)

    monkeypatch.setattr(bot.client.conversations, "receive", received)
    server.script(answer("Caught up."))
    await platform.end_session()
    broken, missed = [await platform.say(f"{AT} {text}", channel=RANDOM) for text in ("two", "three")]
    await bot.reached(missed)
    await bot.client.conversations.settle()
    assert platform.shown(RANDOM) == ["Caught up."]


async def test_what_one_shard_missed_is_caught_up_though_another_was_told_of_newer_messages(
    go_online, platform, server
) -> None:
    platform.shards = 4  # direct messages come by the first, those of the server by the last
    bot = await go_online()
    server.script(answer("First."), answer("In private."), answer("Caught up."))
    await bot.hears(f"{AT} one", channel=GENERAL)
    bot.client.may_identify.clear()
    await platform.end_session(platform.shard)
    missed = await platform.say(f"{AT} two", channel=GENERAL)
    await bot.hears("hello", channel=DM)
    bot.client.may_identify.set()
    await bot.reached(missed)
    await bot.client.conversations.settle()
    assert (platform.shown(GENERAL), platform.shown(DM)) == (["First.", "Caught up."], ["In private."])


async def test_only_people_with_a_role_are_caught_up_where_roles_are_demanded(
    go_online, platform, server
) -> None:
    platform.roles[ANA] = [THREAD]
    bot = await go_online()
    bot.client.allowed = Allowed(roles=frozenset({THREAD}))
    server.script(answer("First."), answer("Caught up."))
    await bot.hears(f"{AT} one", channel=GENERAL)
    await bot.hears("hello", channel=DM)
    await platform.end_session()
    missed = [await platform.say(f"{AT} two", by=by, channel=GENERAL) for by in (ANA, BEN)]
    await bot.reached(missed[-1])
    await bot.client.conversations.settle()
    assert (platform.shown(GENERAL), platform.shown(DM)) == (["First.", "Caught up."], [])


async def test_nobody_is_answered_where_the_operator_does_not_allow_it(bot, platform) -> None:
    bot.client.allowed = Allowed(channels=frozenset({RANDOM}))
    await bot.hears(f"{AT} hello", channel=GENERAL)
    assert platform.shown(GENERAL) == []
    told = await platform.answered(await platform.command("memories", channel=GENERAL))
    assert "where I am allowed" in told.text


async def test_forwarded_messages_and_stickers_are_marked_as_what_they_are(bot, platform, server) -> None:
    server.script(answer("I see."))
    snapshot = TEMPLATES["message"] | {"content": "I plan to quit", "type": 0}
    sticker = {"id": "5", "name": "Wave", "format_type": 1}
    given = {"message_snapshots": [{"message": snapshot}], "sticker_items": [sticker]}
    await bot.hears("look", channel=DM, **given)
    assert server.asked[0].conversation[-1] == (
        "user",
        "look\n(sticker: Wave)\n(forwarded, not written by the sender: “I plan to quit”)",
    )


async def test_a_reply_that_discord_refuses_is_told_in_a_line_with_its_trace(
    bot: Any, pet: Any, platform: Any, server: Any, rows: Rows
) -> None:
    server.script(answer("An odd reply."))
    platform.too_odd = "odd"
    await bot.hears("hello", channel=DM)
    await pet.components.recorder.flush()
    [trace] = await pet.traces.list(TraceFilter(), pet.clock())
    assert platform.shown(DM) == [f"{REFUSED} ({trace.id})"]
    assert sum(code == 50035 for code, _ in platform.refused) <= 2, "once while it grows and once as it is"
    assert "An odd reply." in str(rows("SELECT text FROM messages")), "the transcript has it"


async def test_the_bot_is_there_only_with_a_session_that_has_caught_up(
    bot, pet, platform, clock, server
) -> None:
    deliveries, client = pet.conversations.deliveries, bot.client
    await until(lambda: client.jobs._caught_up)
    clock.advance(seconds=10)
    await client.jobs.do()
    server.script(answer("Hello."))
    await bot.hears(f"{AT} hello", channel=GENERAL)
    client.may_identify.clear()
    await platform.end_session()
    await until(lambda: client.jobs.connection() is None)
    before = await deliveries.last_here("discord")
    clock.advance(minutes=5)
    await client.jobs.do()
    assert await deliveries.last_here("discord") == before
    server.script(answer("Caught up."))
    missed = await platform.say(f"{AT} still there?", channel=GENERAL)
    client.may_identify.set()
    await bot.reached(missed)
    await until(lambda: client.jobs._caught_up is client.jobs.connection())
    clock.advance(seconds=10)
    await client.jobs.do()
    assert await deliveries.last_here("discord") == clock()


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - what is waited for happens in the client
            await asyncio.sleep(0.01)
