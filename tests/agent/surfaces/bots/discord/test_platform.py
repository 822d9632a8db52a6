"""How replies and answers appear on Discord: live, in parts, with receipts; and what happens where Discord
refuses."""

import asyncio
import json
import re
from typing import Any

from discord_server import ANA, BEN, BOT, DM, GENERAL, GUILD, RANDOM, DiscordServer, Posted, refusal
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import Say, ScriptedServer, answer

from agent.surfaces.bots.answers import NOTHING, Answer, Button, Item
from agent.surfaces.bots.discord.messages import channel_id, place_of
from agent.surfaces.bots.discord.rendering import LIMIT, answer_text, escape
from agent.surfaces.bots.splitting import utf16_length
from agent.surfaces.bots.turns import NO_ACCESS
from hachi import Companion
from memory.audience import PRIVATE, Place

AT = f"<@{BOT}>"
HERE = Place(("discord", str(GUILD), str(GENERAL)))
FLU = {"content": "Ana has the flu", "subjects": ["ana"], "ttl": "6d"}


async def test_a_long_reply_comes_in_parts_and_only_the_first_is_a_reply_on_discord(
    bot, platform: DiscordServer, server: ScriptedServer
) -> None:
    text = (
        "Here it is 👍:\n```py\n"
        + "print('é' * 40)  # שלום\n" * 60
        + "```\n"
        + "".join(f"That is all of {n}. " for n in range(60))
    )
    server.script(answer(text))
    await bot.hears(f"{AT} a long one please", channel=GENERAL)
    parts = platform.posted(GENERAL)
    assert len(parts) > 1
    assert [bool(part.body.get("message_reference")) for part in parts] == [True] + [False] * (len(parts) - 1)
    assert "".join(part.text for part in parts).count("print(") == 60
    assert platform.refused == []


async def test_a_reply_whose_answer_is_lost_is_posted_once(bot, platform, server, monkeypatch) -> None:
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda seconds: sleep(seconds / 100))  # of discord.py, to try again
    platform.lost_answers = 2
    server.script(forgetting("Ana has an umbrella"), answer("Hello Ana!"))
    await bot.hears("forget my umbrella")
    assert platform.shown(DM) == ["I will ask you to confirm.", NOTHING]
    platform.without_history.add(GENERAL)  # nor may it reply on Discord
    await bot.hears(f"{AT} hello", channel=GENERAL)
    assert platform.shown(GENERAL) == ["Hello Ana!"]


async def test_its_author_stops_a_reply_with_a_button_that_goes_with_it(bot, platform, server) -> None:
    server.script(Say('{"message": "' + "Once upon a time there was a bee. " * 40 + '"}', pause=0.01))
    await bot.reached(await platform.say(f"{AT} a story", channel=GENERAL))
    await platform.until(lambda: platform.shown(GENERAL) and len(platform.posted(GENERAL)[0].texts) > 1)
    [reply] = platform.posted(GENERAL)
    assert labels(reply) == [["Stop"]], "after an edit too"
    assert "somebody else" in (await press(platform, reply, "Stop", by=BEN)).text
    await platform.press(reply, "Stop")
    await bot.client.conversations.settle()
    assert reply.text.endswith("\n\n(stopped)")
    assert reply.buttons == []


async def test_replies_and_answers_ping_nobody_and_fetch_no_previews(bot, pet, platform, server) -> None:
    text = f"@everyone and @here and <@{BEN}> must know"
    await pet.remember(f"{text}: Ana likes tea", user=f"discord:{ANA}", place=Place(("discord", str(GUILD))))
    server.script(answer(text, {"content": f"{text}: Ana has a dog"}))
    await bot.hears(f"{AT} hello", channel=GENERAL)
    [reply] = platform.posted(GENERAL)
    listed = await platform.answered(await platform.command("memories", channel=GENERAL))
    assert all("@everyone" in posted.text and posted.pings == set() for posted in (reply, listed))
    assert (reply.body["flags"], listed.body["flags"]) == (4, 68)
    platform.closed_dms.add(GENERAL)  # where the bot may not write, nothing stops
    platform.faults.append(lambda _, path: refusal(403, 50001, "no") if path.endswith("/typing") else None)
    server.script(answer("Hello?"), answer("Hello!"))
    await bot.hears(f"{AT} hello", channel=GENERAL)
    await bot.hears("hello", channel=DM)
    assert platform.shown(DM) == [NO_ACCESS.text, "Hello!"]


def forgetting(*texts: str) -> Say:
    """An answer that names what is to be forgotten."""
    return Say(json.dumps({"message": "I will ask you to confirm.", "forget": texts}))


def labels(posted: Posted) -> list[list[str]]:
    """Of its buttons, row by row."""
    return [[button["label"] for button in row["components"]] for row in posted.body["components"]]


async def receipt(bot: Any, server: ScriptedServer, channel: int = GENERAL) -> Posted:
    server.script(answer("Get well soon!", FLU))
    await bot.hears(f"{AT} I have the flu", channel=channel)
    posted: Posted = bot.platform.posted(channel)[-1]
    return posted


async def press(platform: DiscordServer, on: Posted, label: str, **given: Any) -> Posted:
    answered = await platform.answered(await platform.press(on, label, **given))
    assert answered.ephemeral
    return answered


async def here(pet: Companion) -> list[str]:
    return [memory.content for memory in await pet.memories.list(user=f"discord:{BEN}", place=HERE)]


async def test_a_receipt_has_buttons_for_who_told_it(bot, pet, platform, server) -> None:
    reply = await receipt(bot, server)
    assert reply.text == "Get well soon!\n\n-# Remembered until <t:1795771800:f>: Ana has the flu"
    assert labels(reply) == [["Forget", "Make private"]]
    assert "somebody else" in (await press(platform, reply, "Make private", by=BEN)).text
    assert await here(pet) == ["Ana has the flu"]
    assert (await press(platform, reply, "Make private")).text.startswith("Now private: Ana has the flu")
    assert (reply.text, reply.buttons) == ("Get well soon!\n\n-# (made private)", [])
    assert await here(pet) == []
    assert len(await pet.memories.list(user=f"discord:{ANA}")) == 1
    facts = [{"content": f"Ana's locker {n} has the code {n}{n}{n}", "subjects": ["ana"]} for n in range(7)]
    server.script(answer("A lot of lockers.\n```", *facts))
    await bot.hears("my lockers …")
    [reply] = platform.posted(DM)
    assert labels(reply) == [[f"Forget {n}"] for n in range(1, 6)]
    assert reply.text.endswith("-# … and 2 more: /memories")
    assert reply.text.startswith("A lot of lockers.\n```\n```\n\n-# Remembered: Ana's locker 0")
    shown = await press(platform, reply, "Forget 2")
    assert labels(reply) == [[f"Forget {n}"] for n in range(1, 6)]
    assert shown.text.startswith("Shall I forget this?\n- Ana's locker 1 has the code 111")
    assert "“my lockers …”" in shown.text
    assert labels(shown) == [["Forget", "Keep it"]]
    pressed = await platform.press(shown, "Forget")
    await platform.until(lambda: pressed.follow_ups)
    assert pressed.follow_ups[0].text.startswith("Forgotten: Ana's locker 1")


async def test_who_asks_to_forget_confirms_with_a_button_also_after_a_restart(
    bot: Any, pet: Companion, platform: DiscordServer, server: ScriptedServer, go_online: Any, rows: Any
) -> None:
    for fact in ("Ana has the flu", "Ana has a *red* boat"):
        await pet.remember(fact, user=f"discord:{ANA}", place=HERE)
    server.script(forgetting("Ana has the flu", "Ana has a boat"))
    await bot.hears(f"{AT} forget my flu and my boat", channel=GENERAL)
    [reply, question] = platform.posted(GENERAL)
    assert reply.text == "I will ask you to confirm."
    asked, *lines = question.text.splitlines()
    assert asked == "Shall I forget this?"
    number = 1 + lines.index(next(line for line in lines if "flu" in line))
    assert labels(question) == [["Forget 1", "Forget 2"]]
    refused = await press(platform, question, f"Forget {number}", by=BEN)
    assert "somebody else" in refused.text
    assert len(await here(pet)) == 2

    await pet.settle()
    await bot.client.leave()
    jobs = (await go_online()).client.jobs
    pressed = await platform.press(question, f"Forget {number}")
    await platform.until(lambda: len(pressed.follow_ups) == 2)
    gone, left = pressed.follow_ups

    assert gone.text.startswith("Forgotten: Ana has the flu\n-# Deleted: 1 memory, 1 message, 1 reply, ")
    assert left.text.splitlines()[number] == f"{number}. (forgotten)"
    assert (left.ephemeral, labels(left)) == (True, [[f"Forget {3 - number}"]])
    await jobs.do()
    await platform.until(lambda: platform.shown(GENERAL) == [])
    assert await here(pet) == ["Ana has a *red* boat"]
    await platform.press(gone, "Undo")
    await platform.until(lambda: gone.text == "I remember it again: Ana has the flu")
    await jobs.do()
    assert platform.shown(GENERAL) == [], "an undo brings the fact back, and not the post"
    await bot.client.conversations.settle()
    assert len(await here(pet)) == 2
    assert rows("SELECT * FROM hidden") == []


LETTERS = st.text(max_size=40).map(lambda text: text * 10)


@given(
    LETTERS, st.lists(st.builds(Item, LETTERS, LETTERS.map(lambda text: (text,)), label=LETTERS), max_size=12)
)
def test_every_answer_fits_discords_limit(text: str, items: list[Item]) -> None:
    assert utf16_length(answer_text(Answer(text, tuple(items), note=("that is all",)))) <= LIMIT


@given(LETTERS)
def test_escaped_text_has_no_markup(text: str) -> None:
    """No link is hidden, no mention, no heading, no code is opened."""
    said = escape(f"[here](http://a.example) <@123> `{text}`")
    assert re.search(r"(?<!\\)\]", said) is None
    assert re.search(r"(?<!\\)<@", said) is None
    assert re.search(r"(?<!\\)`", said) is None


def test_names_and_addresses_stay_whole_and_other_markup_is_escaped() -> None:
    assert escape("see https://a.example/my_page?x=1#y") == "see https://a.example/my_page?x=1#y"
    assert escape("# big _slanted_ - a__b") == "\\# big \\_slanted\\_ - a\\_\\_b"


async def test_a_question_is_read_whole_before_it_is_answered(bot: Any, platform: DiscordServer) -> None:
    question = Answer(
        "Shall I do this?\nSend, with mail\ntext: " + "*" * 1_500, buttons=(Button("Yes", "keep"),)
    )
    assert await bot.client.platform.write(f"discord:{ANA}", PRIVATE, question)
    *before, last = platform.posted(DM)
    assert "".join(platform.shown(DM)).count("*") == 1_500
    assert not any(one.buttons for one in before)
    assert [button["label"] for button in last.buttons] == ["Yes"]


def test_only_channels_and_threads_have_an_id_and_an_unknown_channel_is_not_private() -> None:
    assert channel_id(Place(("discord", "1", "2"))) == 2
    assert channel_id(Place(("discord", "1", "2", "3"))) == 3
    for path in ((), ("discord",), ("discord", "1"), ("slack", "1", "2"), ("discord", "1", "general")):
        assert channel_id(Place(path)) is None
    assert place_of(None) is place_of(object()) is None


VIEW, HISTORY = 1 << 10, 1 << 16
SECRET = 4711


async def test_who_can_read_a_channel_is_asked_of_discord_at_that_moment(
    go_online: Any, platform: DiscordServer
) -> None:
    platform.threads[SECRET], platform.private_threads[SECRET] = GENERAL, {BEN}
    platform.denied = {RANDOM: VIEW}
    reader, user = (await go_online()).client.platform, f"discord:{BEN}"
    general, random, secret, gone, elsewhere = (
        Place(("discord", str(GUILD), str(GENERAL))),
        Place(("discord", str(GUILD), str(RANDOM))),
        Place(("discord", str(GUILD), str(GENERAL), str(SECRET))),
        Place(("discord", str(GUILD), "12")),
        Place(("discord", "99", str(GENERAL))),
    )
    known = {general: "#general", random: "", secret: "#a thread", gone: ""}
    assert await reader.may_read(user, [*known, elsewhere]) == known, "of another server it does not tell"
    assert await reader.may_read(user, [Place(("slack", "T", "C"))]) == {Place(("slack", "T", "C")): ""}
    platform.private_threads[SECRET].clear()
    assert await reader.may_read(user, [secret]) == {secret: ""}
    platform.denied = {GENERAL: HISTORY}
    await platform.send("CHANNEL_UPDATE", platform._channel(GENERAL))
    await until(lambda: not reader.client.get_channel(GENERAL).overwrites_for(_everybody(reader)).is_empty())
    assert await reader.may_read(user, [general, secret]) == {general: "", secret: ""}
    platform.denied = {}
    platform.gone.add(BEN)
    assert await reader.may_read(user, [general]) == {general: ""}
    platform.gone.clear()
    # discord.py asks again after a 500, for 25 seconds in all, and not after a 503
    platform.faults.append(lambda _, path: refusal(503, 0, "broken") if "/members/" in path else None)
    assert await reader.may_read(user, [general]) == {}, "what it does not tell is not known"


def _everybody(reader: Any) -> Any:
    return reader.client.get_guild(GUILD).default_role


async def until(holds: Any) -> None:
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - discord.py passes an event on
            await asyncio.sleep(0.005)
