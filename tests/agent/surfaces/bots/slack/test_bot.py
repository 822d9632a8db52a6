"""Which messages on Slack are answered, and where. slack-bolt is the real one, the model scripted."""

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from PIL import Image
from scripted_server import Call, Hang, Say, ScriptedServer, answer
from slack_server import BOT, BOT_ID, Posted, SlackServer, buttons_of

from agent.surfaces.bots.answers import NOTHING, QUESTION
from agent.surfaces.bots.commands import NOT_YOURS_TO_FORGET
from agent.surfaces.bots.turns import NO_ACCESS
from agent.surfaces.links import read_link
from memory.audience import Place

DM, GENERAL = "D1", "C1"
HERE = Place(("slack", "T1", GENERAL))


def texts(slack: SlackServer, channel: str) -> list[tuple[str, str | None]]:
    return [(message.text, message.thread) for message in slack.in_channel(channel)]


async def test_a_persons_zone_is_the_one_that_slack_knows_until_they_tell_one(
    bot, slack, server, pet, clock
) -> None:
    slack.zones = {"UANA": "Europe/Paris", "UBEN": "Nowhere/Atlantis"}
    due = {"id": None, "description": "call the dentist", "status": "open", "due": "2026-11-22T09:00"}
    hours = []
    for user, channel in (("UANA", DM), ("UBEN", "D2")):
        server.script(Call("update_task", due), answer("Noted."))
        await bot.hears(slack.says(user, "remind me tomorrow at nine to call", channel=channel))
        [task] = await pet.tasks.list(user=f"slack:T1:{user}")
        hours.append(task.due.hour)
    assert hours == [8, 9]
    for at, told, known in ((1, None, "Asia/Tokyo"), (2, "Europe/London", "Europe/London")):
        if told:
            await pet.people.set_context("timezone", told, user="slack:T1:UANA")
        slack.zones["UANA"] = ("Asia/Tokyo", "America/Lima")[at - 1]
        clock.advance(minutes=61)
        server.script(answer("Hello."))
        await bot.hears(slack.says("UANA", "hello from afar", channel=DM))
        assert str(await pet.people.zone(user="slack:T1:UANA")) == known


async def test_a_mention_in_a_channel_is_answered_in_a_thread_that_goes_on_without_mentions(
    bot: Any, go_online: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    server.script(answer("Tea is ready."), answer("With milk, then."))
    await bot.hears(*slack.mentions("UANA", "tea?", channel=GENERAL, ts="1.5"))
    [message] = slack.in_channel(GENERAL)
    assert (message.text, message.thread) == ("Tea is ready.", "1.5")
    assert slack.statuses == [(GENERAL, "1.5", "processing"), (GENERAL, "1.5", "active")]
    assert "\nWhere: #general, where others" in server.asked[0].context
    again = await go_online()
    slack.limited = {"conversations.replies"}  # the look-up of the thread waits
    await again.hears(slack.says("UBEN", "with milk", channel=GENERAL, thread_ts="1.5"))
    assert slack.in_channel(GENERAL, thread="1.5")[-1].text == "With milk, then."
    said = [text for _, text in server.asked[1].conversation]
    assert said == ["Ana: tea?", "Tea is ready.", "Ben: with milk"]
    server.script(answer("Good."))  # in a thread that the bot began
    slack.messages.append(Posted("C2", "1.5", "A reminder"))
    await again.hears(slack.says("UANA", "done!", channel="C2", thread_ts="1.5", parent_user_id=BOT))
    assert texts(slack, "C2")[1:] == [("Good.", "1.5")]


async def test_only_who_asks_to_forget_sees_the_question_and_confirms(
    bot, slack, server, pet, monkeypatch
) -> None:
    reached = pet.settings.model_copy(update={"console_url": "https://hachi.test"})
    monkeypatch.setattr(type(pet), "settings", reached)
    await pet.remember("Ana has the flu", user="slack:T1:UANA")
    for text in ("Ana has the flu", "an umbrella"):
        server.script(Say(json.dumps({"message": "I will ask you.", "forget": [text]})))
        await bot.hears(slack.says("UANA", f"please forget {text}", channel=DM))
    assert [text for text, _ in texts(slack, DM)] == ["I will ask you."] * 2
    [asked, none] = slack.only_for("UANA")
    assert asked.thread == slack.in_channel(asked.channel)[0].thread, "beside the reply"
    assert (asked.text.splitlines()[0], none.text) == (QUESTION, NOTHING)
    [forget] = buttons_of(asked.blocks)
    [_, link] = asked.blocks[-1]["elements"][0]["elements"]
    token = parse_qs(urlsplit(link["url"]).query)["link"][0]
    opens = await read_link(pet, token)
    assert (link["type"], opens.user, opens.page[:15]) == ("link", "slack:T1:UANA", "/forget?memory=")
    for user, told in (
        ("UBEN", NOT_YOURS_TO_FORGET),
        ("UANA", "Forgotten: Ana has the flu\nDeleted: 1 memory, 1 message, "),
    ):
        before = len(slack.responses)
        await slack.deliver(slack.pressed(forget, user=user))
        await slack.until(lambda before=before: len(slack.responses) > before)
        assert slack.responses[-1]["text"].startswith(told)
        assert slack.responses[-1]["replace_original"] is True
        assert len(await pet.memories.list(user="slack:T1:UANA")) == (0 if user == "UANA" else 1)
    [undo] = buttons_of(slack.responses[-1]["blocks"])
    await slack.deliver(slack.pressed(undo, user="UANA"))
    await slack.until(lambda: len(slack.responses) == 3)
    assert slack.responses[-1]["text"] == "I remember it again: Ana has the flu"


async def test_the_model_reads_names_and_not_the_mention_that_calls_the_bot(bot, slack, server) -> None:
    server.script(answer("Yes."), answer("Yes?"), answer("Hello."))
    await bot.hears(slack.says("UANA", f"<@{BOT}>, ask <@UBEN> &amp; me", channel=DM))
    assert server.asked[0].conversation[-1] == ("user", "ask @Ben & me")
    await bot.hears(slack.says("UANA", f"<@{BOT}>", channel=DM))
    assert server.asked[1].conversation[-1][1].startswith("@")
    await bot.hears(*slack.mentions("UNEW", "hello", channel=GENERAL))
    assert server.asked[2].conversation[-1] == ("user", "UNEW: hello")


BLOCKS = [{"type": "section", "text": {"type": "mrkdwn", "text": "Where do we eat?"}}]
BLOCKS += [
    {"type": "actions", "elements": [{"type": "button", "text": {"type": "plain_text", "text": "Vote"}}]}
]


@pytest.mark.parametrize(
    ("held", "shown"),
    [
        ({"text": "<@UANA> I like *tea* in <#C2>"}, "Ben: @Ana I like *tea* in #general"),
        ({"text": "<!subteam^S1> <!date^1893456000^{date}>"}, "Ben: @cooks 2030-01-01 00:00 UTC"),
        ({"files": [{"id": "F1", "name": "plan.pdf"}]}, "Ben: (file: plan.pdf)"),
        (
            {"blocks": BLOCKS, "user": None, "bot_profile": {"name": "Polly"}},
            "Polly: (shown: Where do we eat?)",
        ),
    ],
)
async def test_what_a_thread_of_others_begins_with_is_shown_in_words_and_is_not_kept_as_the_senders(
    bot: Any, slack: SlackServer, server: ScriptedServer, held: dict[str, Any], shown: str
) -> None:
    server.script(answer("I see."), answer("Still."))
    slack.says("UBEN", "", channel=GENERAL, ts="1.5", **held)
    slack.said[-1] |= held
    for number in range(60):
        slack.says("UBEN", f"no {number}", channel=GENERAL, ts=f"1.6{number:02}", thread_ts="1.5")
    await bot.hears(*slack.mentions("UANA", ":tada: summarise this", channel=GENERAL, thread_ts="1.5"))
    assert f"> Before it in the thread:\n> {shown}\n" in server.asked[0].context
    assert "> Ben: no 59\n" in server.asked[0].context
    assert "> Ben: no 3\n" not in server.asked[0].context
    assert server.asked[0].conversation == [("user", "Ana: :tada: summarise this")]
    await bot.hears(slack.says("UANA", "and now?", channel=GENERAL, thread_ts="1.5"))
    assert "summarise this" not in server.asked[1].context, "what was said to it is in the transcript"


async def test_a_forwarded_message_is_marked_as_what_somebody_else_wrote(bot, slack, server) -> None:
    server.script(answer("Good."))
    by_ben = {"is_share": True, "author_id": "UBEN", "author_name": "Benjamin", "text": "<@UANA>, lunch?"}
    by_app = {"is_msg_unfurl": True, "author_name": "Menu", "files": [{"id": "F1", "name": "menu.pdf"}]}
    shared = [by_ben, by_app, {"text": "an unfurled link"}]
    await bot.hears(slack.says("UANA", "remember this", channel=DM, attachments=shared))
    said = server.asked[0].conversation[-1][1].splitlines()
    assert said[0] == "remember this"
    assert said[1] == "(forwarded from Ben, not written by the sender: “@Ana, lunch?”)"
    assert said[2:] == ["(forwarded from Menu, not written by the sender: “(file: menu.pdf)”)"]


HELLO = {"channel": DM, "text": f"<@{BOT}> hello"}


OTHERS: list[dict[str, Any]] = [
    {},
    {"thread_ts": "1.5"},
    {"thread_ts": "1.5", "parent_user_id": "UBEN"},
    *(
        HELLO | other
        for other in (
            {"bot_id": "BOTHER"},
            {"bot_id": BOT_ID, "user": BOT},
            {"hidden": True},
            *({"user": user} for user in (BOT, "USLACKBOT", None)),
            *({"subtype": f"{kind}"} for kind in ("bot_message", "message_deleted", "channel_join")),
        )
    ),
]


async def test_other_messages_bots_edits_and_notices_are_neither_answered_nor_kept(
    bot: Any, slack: SlackServer, server: ScriptedServer, rows: Callable[..., Any]
) -> None:
    for event in OTHERS:
        payload = slack.says("UANA", "lunch?", channel=GENERAL)
        payload["event"] |= event
        await bot.hears(payload)
        assert (server.asked, slack.messages) == ([], []), event
    assert rows("SELECT * FROM messages") == []


async def test_facts_of_a_thread_belong_to_its_channel(bot, slack, server, pet) -> None:
    server.script(answer("Noted.", {"content": "Ana has a dog called Rex"}), answer("Rain."))
    await bot.hears(*slack.mentions("UANA", "my dog is called Rex", channel=GENERAL, ts="1.5"))
    await bot.hears(*slack.mentions("UBEN", "the weather?", channel=GENERAL, ts="1.6"))
    assert server.asked[1].conversation == [("user", "Ben: the weather?")], "a thread is a conversation"
    known = await pet.memories.list(user="slack:T1:UBEN", place=HERE)
    assert [memory.content for memory in known] == ["Ana has a dog called Rex"]


async def test_calls_are_repeated_files_are_fetched_and_a_reply_notifies_nobody(bot, slack, server) -> None:
    slack.limited = {"chat.postMessage"}
    server.script(answer("You said <!channel>, <@UBEN> & see https://x.test/?a=1&b=2"))
    files = [slack.attach("poem.txt", "Früh\n<!here>".encode()), slack.attach("me.png", b"\x89", "image/png")]
    await bot.hears(slack.says("UANA", "", channel=DM, subtype="file_share", files=files))
    [(text, _)] = texts(slack, DM)
    assert text == "You said &lt;!channel&gt;, &lt;@UBEN&gt; &amp; see https://x.test/?a=1&b=2"
    assert slack.called("chat.postMessage")[0]["unfurl_links"] is False
    _, said = server.asked[0].conversation[-1]
    assert said.startswith("[file poem.txt]\nFrüh\n<!here>\n[end of poem.txt]")
    assert "[picture me.png]" in said


@pytest.mark.parametrize(
    ("channel", "other", "refused", "reacts"),
    [
        (GENERAL, {}, "", True),
        (GENERAL, {"thread_ts": "1.4"}, "", False),
        (DM, {}, "", False),
        (DM, {}, "not_allowed", True),
        (GENERAL, {"thread_ts": "1.4"}, "missing_scope", True),
    ],
)
async def test_a_reaction_stands_where_no_status_is_seen_until_the_answer(
    bot, slack, server, channel, other, refused, reacts
) -> None:
    slack.refused = {"agents.sessions.setStatus": refused} if refused else {}
    server.script(Hang(), answer("Hello."))
    await slack.deliver(*slack.mentions("UANA", "hello", channel=channel, ts="1.5", **other))
    await slack.until(lambda: server.asked)
    if reacts:
        await slack.until(lambda: slack.reactions)
    assert slack.reactions == [(channel, "1.5", "eyes")] * reacts
    await bot.hears(slack.stop("UANA", channel=channel, thread=other.get("thread_ts", "1.5")))
    assert (slack.reactions, len(slack.called("reactions.remove"))) == ([], int(reacts))


async def test_without_the_scope_for_reactions_none_is_tried_again(bot, slack, server) -> None:
    slack.refused = {"reactions.add": "missing_scope"}
    server.script(answer("Hello."), answer("Hello again."))
    for ts in ("1.5", "1.6"):
        await bot.hears(*slack.mentions("UANA", "hello", channel=GENERAL, ts=ts))
    assert [text for text, _ in texts(slack, GENERAL)] == ["Hello.", "Hello again."]
    assert (slack.called("reactions.remove"), [name for name, _ in slack.calls].count("reactions.add")) == (
        [],
        1,
    )


def picture() -> bytes:
    out = BytesIO()
    Image.new("RGB", (8, 8), "red").save(out, "PNG")
    return out.getvalue()


async def test_pictures_that_are_attached_forwarded_or_at_the_head_of_a_thread_are_seen(
    go_online, open_pet, slack, server
) -> None:
    given = {"openai_base_url": server.url, "openai_api_key": "k", "model": "tiny", "api": "chat"}
    bot = await go_online(await open_pet(**given, images=True, consolidate="plain"))
    mine, shared, first = (slack.attach(f"{name}.png", picture(), "image/png") for name in "abc")
    forwarded = [{"is_share": True, "author_id": "UBEN", "text": "look", "files": [shared]}]
    slack.says("UBEN", "our boat", channel=GENERAL, ts="1.4", files=[first])
    server.script(answer("Three pictures."), answer("I saw it."))
    told = {"files": [mine], "attachments": forwarded, "thread_ts": "1.4"}
    await bot.hears(*slack.mentions("UANA", "what is that?", channel=GENERAL, ts="1.5", **told))
    content = server.asked[0].json["messages"][-1]["content"]
    assert sum("image_url" in part for part in content) == 3
    assert sorted(slack.fetched) == ["a.png", "b.png", "c.png"]
    await bot.hears(*slack.mentions("UANA", "thanks", channel=GENERAL, ts="1.6", thread_ts="1.4"))
    assert isinstance(server.asked[1].json["messages"][-1]["content"], str), (
        "the first picture was seen before"
    )


async def test_where_everything_is_listened_to_answers_stay_out_of_threads(bot, slack, server, pet) -> None:
    await bot.hachi.pet.people.places.set(HERE, "everything", "slack:T1:UANA", pet.clock())
    server.script(answer("Sunny."), answer("Tomorrow too."))
    await bot.hears(slack.says("UANA", "the weather?", channel=GENERAL))
    await bot.hears(*slack.mentions("UBEN", "and tomorrow?", channel=GENERAL))
    assert texts(slack, GENERAL) == [("Sunny.", None), ("Tomorrow too.", None)]
    said = [text for _, text in server.asked[1].conversation]
    assert said == ["Ana: the weather?", "Sunny.", "Ben: and tomorrow?"]
    await bot.hachi.pet.people.places.set(HERE, "nothing", "slack:T1:UANA", pet.clock())
    await bot.hears(*slack.mentions("UANA", "hello?", channel=GENERAL))
    assert len(server.asked) == 2


async def test_a_reply_that_a_person_stops_on_slack_ends(bot, slack, server) -> None:
    server.script(Hang('{"message": "Once upon a time there was a bee', 20), answer("Hello."))
    await slack.deliver(*slack.mentions("UANA", "a story", channel=GENERAL, ts="1.5"))
    await slack.until(lambda: slack.in_channel(GENERAL))
    await slack.deliver(slack.stop("UANA", channel=GENERAL, thread="another"))
    await bot.hears(slack.stop("UANA", channel=GENERAL, thread="1.5"))
    [message] = slack.in_channel(GENERAL)
    assert message.text.startswith("Once upon")
    assert message.text.endswith("\n\n(stopped)")
    assert slack.statuses[-1] == (GENERAL, "1.5", "active")
    await bot.hears(*slack.mentions("UANA", "hello", channel=GENERAL, ts="1.6"))
    assert slack.in_channel(GENERAL, thread="1.6")[0].text == "Hello."


async def test_a_message_that_cannot_be_stored_is_left_to_slack_and_its_author_is_told_if_that_lasts(
    bot: Any, slack: SlackServer, server: ScriptedServer, rows: Callable[..., Any], clock: Any
) -> None:
    rows("ALTER TABLE deliveries RENAME TO elsewhere")
    message = slack.says("UANA", "hello", channel=DM)
    lost = await slack.send(message)
    await slack.deliver(slack.event({"type": "reaction_added", "user": "UANA", "item": {}}))
    await bot.hachi.conversations.tell_failed()
    assert slack.messages == [], "Slack sends it again at once"
    clock.advance(minutes=1)
    for _ in range(2):
        await bot.hachi.conversations.tell_failed()
    [told] = slack.in_channel(DM)
    assert told.text.startswith("I can't reach my memory right now.")
    rows("ALTER TABLE elsewhere RENAME TO deliveries")
    server.script(answer("Hello!"))
    await bot.hears(message)
    assert lost not in slack.acknowledged
    assert [text for text, _ in texts(slack, DM)] == [told.text, "Hello!"]


async def test_where_the_bot_may_not_write_on_slack_each_is_told_once(bot, slack, server) -> None:
    slack.closed = {GENERAL}
    server.script(*[answer("Nobody reads this.")] * 3)
    for user in ("UANA", "UANA", "UBEN"):
        await bot.hears(*slack.mentions(user, "hello?", channel=GENERAL))
    for private in ("DANA", "DBEN"):
        assert [message.text for message in slack.in_channel(private)] == [NO_ACCESS.text]
