"""What happens on Slack, as people see it. slack-bolt is the real one, the model scripted."""

from collections.abc import Callable
from typing import Any

import pytest
from scripted_server import Call, Fail, Hang, ScriptedServer, answer
from slack_server import BOT, BOT_ID, SlackServer

from agent import Companion
from agent.surfaces.bots.conversations import TOO_MANY
from memory.audience import Place

DM, GENERAL = "D1", "C1"


async def test_a_direct_message_is_answered_there(
    bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    server.script(answer("Hello **Ana**!"))
    await bot.hears(slack.says("UANA", "hello", channel=DM))
    [message] = slack.in_channel(DM)
    assert (message.text, message.thread) == ("Hello **Ana**!", None)
    assert server.asked[0].conversation[-1] == ("user", "hello")


async def test_a_mention_in_a_channel_is_answered_in_a_thread_as_a_stream(
    bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    server.script(answer("Good morning, both of you, what a day!"))
    await bot.hears(*slack.mentions("UANA", "good morning", channel=GENERAL, ts="1.5"))
    [message] = slack.in_channel(GENERAL)
    assert (message.text, message.thread) == ("Good morning, both of you, what a day!", "1.5")
    assert message.streamed
    assert not message.streaming
    assert (GENERAL, "1.5", "is thinking…") in slack.statuses
    assert slack.statuses[-1] == (GENERAL, "1.5", "")


async def test_a_thread_in_a_direct_message_is_answered_in_it(
    bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    server.script(answer("Here I am."))
    await bot.hears(slack.says("UANA", "are you there?", channel=DM, thread_ts="1.2"))
    assert [message.thread for message in slack.in_channel(DM)] == ["1.2"]


async def test_the_mention_that_calls_the_bot_is_no_part_of_what_was_said(
    bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    server.script(answer("Yes."), answer("Yes?"))
    await bot.hears(slack.says("UANA", f"<@{BOT}>, ask <@UBEN> &amp; me", channel=DM))
    assert server.asked[0].conversation[-1] == ("user", "ask @Ben & me")
    await bot.hears(slack.says("UANA", f"<@{BOT}>", channel=DM))
    assert server.asked[1].conversation[-1][1].startswith("@")


async def test_a_thread_in_which_the_bot_has_spoken_goes_on_without_mentions(
    bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    server.script(answer("Tea is ready."), answer("With milk, then."))
    await bot.hears(*slack.mentions("UANA", "tea?", channel=GENERAL, ts="1.5"))
    await bot.hears(slack.says("UBEN", "with milk", channel=GENERAL, thread_ts="1.5"))
    assert [message.text for message in slack.in_channel(GENERAL, thread="1.5")] == [
        "Tea is ready.",
        "With milk, then.",
    ]
    said = [text for _, text in server.asked[1].conversation]
    assert said == ["Ana: tea?", "Tea is ready.", "Ben: with milk"]


async def test_a_thread_that_the_bot_began_goes_on_without_mentions(
    bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    server.script(answer("Good."))
    await bot.hears(slack.says("UANA", "done!", channel=GENERAL, thread_ts="1.5", parent_user_id=BOT))
    assert [message.text for message in slack.in_channel(GENERAL)] == ["Good."]


@pytest.mark.parametrize(
    "other",
    [{}, {"thread_ts": "1.5"}, {"thread_ts": "1.5", "parent_user_id": "UBEN"}],
    ids=["outside of threads", "in a thread", "in a thread of theirs"],
)
async def test_what_people_say_to_each_other_is_neither_answered_nor_kept(
    bot: Any, slack: SlackServer, server: ScriptedServer, rows: Callable[..., Any], other: dict[str, str]
) -> None:
    await bot.hears(slack.says("UANA", "lunch?", channel=GENERAL, **other))
    assert server.asked == []
    assert slack.messages == []
    assert rows("SELECT * FROM messages") == []


async def test_in_its_own_thread_what_begins_with_anothers_name_is_not_for_the_bot(
    bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    server.script(answer("Tea is ready."))
    await bot.hears(*slack.mentions("UANA", "tea?", channel=GENERAL, ts="1.5"))
    await bot.hears(slack.says("UANA", "<@UBEN> do you want some?", channel=GENERAL, thread_ts="1.5"))
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"bot_id": "BOTHER"},
        {"bot_id": BOT_ID, "user": BOT},
        {"user": BOT},
        {"user": "USLACKBOT"},
        {"user": None},
        {"subtype": "bot_message"},
        {"subtype": "message_changed"},
        {"subtype": "message_deleted"},
        {"subtype": "channel_join"},
        {"edited": {"user": "UANA", "ts": "1.6"}},
        {"hidden": True},
    ],
    ids=str,
)
async def test_bots_edits_and_notices_are_acknowledged_and_not_answered(
    bot: Any, slack: SlackServer, server: ScriptedServer, other: dict[str, Any]
) -> None:
    await bot.hears(slack.says("UANA", f"<@{BOT}> hello", channel=DM, **other))
    assert (server.asked, slack.messages) == ([], [])


async def test_two_bots_in_a_thread_do_not_talk_for_ever(
    bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    server.script(answer("Hello."))
    await bot.hears(*slack.mentions("UANA", "hello", channel=GENERAL, ts="1.5"))
    for _ in range(3):
        await bot.hears(
            *slack.mentions("UPARROT", "hello", channel=GENERAL, thread_ts="1.5", bot_id="BPARROT")
        )
    assert len(server.asked) == 1


async def test_a_loop_with_a_machine_that_passes_for_a_person_ends(
    bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    bot.hachi.conversations.turns_per_minute = 3
    server.script(*(answer("Indeed.") for _ in range(3)))
    for _ in range(8):
        await bot.hears(*slack.mentions("UPARROT", "indeed?", channel=GENERAL, thread_ts="1.5"))
    assert [message.text for message in slack.in_channel(GENERAL)] == ["Indeed."] * 3 + [TOO_MANY]


async def test_a_message_that_comes_again_is_answered_once_also_after_a_restart(
    go_online: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    server.script(answer("Hello!"))
    first = await go_online()
    message = slack.says("UANA", "hello", channel=DM)
    await first.hears(message, message)
    await slack.deliver(message, retry_attempt=1, retry_reason="timeout")
    second = await go_online()
    await second.hears(message)
    assert [message.text for message in slack.in_channel(DM)] == ["Hello!"]
    assert len(server.asked) == 1


async def test_after_a_restart_the_bot_still_knows_its_threads(
    go_online: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    server.script(answer("Tea is ready."), answer("Of course."))
    first = await go_online()
    await first.hears(*slack.mentions("UANA", "tea?", channel=GENERAL, ts="1.5"))
    second = await go_online()
    await second.hears(slack.says("UBEN", "and for me?", channel=GENERAL, thread_ts="1.5"))
    assert slack.in_channel(GENERAL, thread="1.5")[-1].text == "Of course."


async def test_two_people_in_a_channel_and_a_direct_message(
    bot: Any, slack: SlackServer, server: ScriptedServer, pet: Companion
) -> None:
    server.script(
        answer("Our secret.", {"content": "Ana looks for another job"}),
        answer("Noted.", {"content": "Ana has a dog called Rex"}),
        answer("She has a dog."),
    )
    await bot.hears(slack.says("UANA", "I am looking for another job", channel=DM))
    await bot.hears(*slack.mentions("UANA", "my dog is called Rex", channel=GENERAL, ts="1.5"))
    await bot.hears(*slack.mentions("UBEN", "what of Ana?", channel=GENERAL, ts="1.6", thread_ts="1.5"))
    assert "job" not in server.asked[1].text + server.asked[2].text
    said = [text for _, text in server.asked[2].conversation]
    assert (said[0], said[-1]) == ("Ana: my dog is called Rex", "Ben: what of Ana?")
    assert {memory.content for memory in await pet.memories(user="slack:T1:UANA")} == {
        "Ana looks for another job",
        "Ana has a dog called Rex",
    }
    assert await pet.memories(user="slack:T1:UBEN") == []
    assert [receipt.channel for receipt in slack.only_for("UANA")] == [DM, GENERAL]
    assert slack.only_for("UBEN") == []


async def test_what_is_said_in_private_does_not_come_up_in_the_channel(
    bot: Any, slack: SlackServer, server: ScriptedServer, pet: Companion
) -> None:
    await pet.remember("Ana is looking for another job", user="slack:T1:UANA", importance=0.9)
    await pet.remember("The release is on Friday", user="slack:T1:UANA", place="slack/T1/C1", importance=0.9)
    look = Call("search_memories", {"query": "Ana job release Friday"})
    server.script(look, answer("Friday."), look, answer("Friday."))
    await bot.hears(*slack.mentions("UBEN", "what is new?", channel=GENERAL))
    assert "release" in server.asked[1].results[0]
    assert "job" not in server.asked[1].text + server.asked[1].results[0]
    await bot.hears(slack.says("UBEN", "what is new?", channel="D2"))
    assert "job" not in server.asked[3].results[0]
    assert "release" not in server.asked[3].results[0]


async def test_what_is_learned_from_a_mention_belongs_to_the_channel(
    bot: Any, slack: SlackServer, server: ScriptedServer, pet: Companion
) -> None:
    server.script(answer("Noted.", {"content": "The release is on Friday", "importance": 0.9}))
    await bot.hears(*slack.mentions("UANA", "the release is on Friday", channel=GENERAL))
    known = await pet.memories(user="slack:T1:UBEN", place=Place(("slack", "T1", GENERAL)))
    assert [memory.content for memory in known] == ["The release is on Friday"]


async def test_what_is_learned_in_a_thread_is_known_in_the_channel_and_in_its_other_threads(
    bot: Any, slack: SlackServer, server: ScriptedServer, pet: Companion
) -> None:
    look = Call("search_memories", {"query": "when is the release?"})
    server.script(answer("Yes?"), answer("Noted.", {"content": "The release is on Friday"}))
    await bot.hears(*slack.mentions("UANA", "are you there?", channel=GENERAL, ts="1.5"))
    await bot.hears(slack.says("UANA", "the release is on Friday", channel=GENERAL, thread_ts="1.5"))
    server.script(look, answer("On Friday."), look, answer("On Friday."), look, answer("No idea."))
    await bot.hears(*slack.mentions("UBEN", "when is the release?", channel=GENERAL, ts="1.7"))
    await bot.hears(*slack.mentions("UBEN", "when?", channel=GENERAL, ts="1.9", thread_ts="1.8"))
    await bot.hears(*slack.mentions("UBEN", "when?", channel="C2", ts="1.9"))
    results = [asked.results[0] for asked in server.asked if asked.results]
    assert ["Friday" in result for result in results] == [True, True, False]


async def test_two_threads_of_a_channel_are_two_conversations(
    bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    server.script(answer("Tea."), answer("Rain."))
    await bot.hears(*slack.mentions("UANA", "tea?", channel=GENERAL, ts="1.5"))
    await bot.hears(*slack.mentions("UBEN", "the weather?", channel=GENERAL, ts="1.6"))
    assert server.asked[1].conversation == [("user", "Ben: the weather?")]


async def test_what_was_remembered_is_told_to_the_person_alone_and_can_be_taken_back(
    bot: Any, slack: SlackServer, server: ScriptedServer, pet: Companion
) -> None:
    server.script(answer("Noted.", {"content": "Ana likes <!channel> & tea", "importance": 0.9, "ttl": "3h"}))
    await bot.hears(*slack.mentions("UANA", "I like tea", channel=GENERAL, ts="1.5"))
    [receipt] = slack.only_for("UANA")
    assert receipt.thread == "1.5"
    assert "Ana likes &lt;!channel&gt; &amp; tea" in receipt.whole
    assert "until" in receipt.whole
    await bot.hears(slack.pressed(receipt.button("Undo"), user="UANA", channel=GENERAL))
    await slack.until(lambda: slack.responses)
    assert "Forgotten" in slack.responses[0]["text"]
    assert slack.responses[0]["replace_original"] is True
    assert await pet.memories(user="slack:T1:UANA") == []


async def test_nothing_in_a_reply_wakes_anybody(bot: Any, slack: SlackServer, server: ScriptedServer) -> None:
    server.script(answer("You said <!channel>, <@UBEN> & see https://x.test/?a=1&b=2"))
    await bot.hears(slack.says("UANA", "what did I say?", channel=DM))
    [message] = slack.in_channel(DM)
    assert message.text == "You said &lt;!channel&gt;, &lt;@UBEN&gt; &amp; see https://x.test/?a=1&b=2"
    assert slack.called("chat.postMessage")[0]["unfurl_links"] is False


async def test_a_long_answer_comes_in_several_messages_and_no_code_is_broken(
    bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    code = "\n".join(f"if a < {number}: print('a & b')" for number in range(600))
    server.script(answer(f"So:\n```python\n{code}\n```\nThat is all."))
    await bot.hears(slack.says("UANA", "show me", channel=DM))
    parts = [message.text for message in slack.in_channel(DM)]
    assert len(parts) > 1
    assert all(part.count("```") % 2 == 0 and len(part) <= 12_000 for part in parts)
    assert all(f"a &lt; {number}:" in "".join(parts) for number in range(600))


async def test_where_there_are_no_streams_the_message_is_edited(
    bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    slack.deaf = {"chat.startStream", "assistant.threads.setStatus"}
    server.script(answer("It will rain, and then it will not."), answer("Yes."))
    await bot.hears(*slack.mentions("UANA", "the weather?", channel=GENERAL, ts="1.5"))
    [message] = slack.in_channel(GENERAL, thread="1.5")
    assert message.text == "It will rain, and then it will not."
    assert not message.streamed
    await bot.hears(*slack.mentions("UANA", "sure?", channel=GENERAL, thread_ts="1.5"))
    assert bot.hachi.conversations._platform.has_streams is False


async def test_too_many_calls_are_made_again_when_slack_says(
    bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    slack.limit("chat.postMessage")
    server.script(answer("Hello!"))
    await bot.hears(slack.says("UANA", "hello", channel=DM))
    assert [message.text for message in slack.in_channel(DM)] == ["Hello!"]


async def test_a_slack_that_stumbles_gets_the_answer_all_the_same(
    bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    slack.unanswered = {"chat.postMessage": 2, "users.info": 1}
    server.script(answer("Hello!"))
    await bot.hears(slack.says("UANA", "hello", channel=DM))
    assert [message.text for message in slack.in_channel(DM)] == ["Hello!"]


async def test_a_model_that_is_away_is_told_shortly_with_the_trace(
    bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    server.script(Fail(503))
    await bot.hears(slack.says("UANA", "hello", channel=DM))
    [message] = slack.in_channel(DM)
    assert message.text.startswith("I can't think right now")
    assert "trace_" in message.text
    assert server.url not in message.text


async def test_a_text_that_is_attached_is_read_and_other_files_are_named(
    bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    server.script(answer("A poem."))
    files = [slack.attach("poem.txt", "Früh\n<!here>".encode()), slack.attach("me.png", b"\x89", "image/png")]
    await bot.hears(slack.says("UANA", "", channel=DM, subtype="file_share", files=files))
    _, said = server.asked[0].conversation[-1]
    assert said.startswith("[file poem.txt]\nFrüh\n<!here>\n[end of poem.txt]")
    assert "[attached, but not read: me.png (image/png" in said


async def test_whoever_slack_does_not_tell_of_goes_by_their_id(
    bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    server.script(answer("Hello."))
    await bot.hears(*slack.mentions("UNEW", "hello", channel=GENERAL))
    assert server.asked[0].conversation[-1] == ("user", "UNEW: hello")


async def test_where_everything_is_listened_to_the_talk_stays_out_of_threads(
    bot: Any, slack: SlackServer, server: ScriptedServer, pet: Companion
) -> None:
    await bot.hachi.places.set(Place(("slack", "T1", GENERAL)), "everything", "slack:T1:UANA", pet.clock())
    server.script(answer("Sunny."), answer("Tomorrow too."))
    await bot.hears(slack.says("UANA", "the weather?", channel=GENERAL))
    await bot.hears(*slack.mentions("UBEN", "and tomorrow?", channel=GENERAL))
    assert [(message.text, message.thread) for message in slack.in_channel(GENERAL)] == [
        ("Sunny.", None),
        ("Tomorrow too.", None),
    ]
    assert [text for _, text in server.asked[1].conversation] == [
        "Ana: the weather?",
        "Sunny.",
        "Ben: and tomorrow?",
    ]


async def test_where_nothing_is_listened_to_mentions_are_not_answered(
    bot: Any, slack: SlackServer, server: ScriptedServer, pet: Companion
) -> None:
    await bot.hachi.places.set(Place(("slack", "T1", GENERAL)), "nothing", "slack:T1:UANA", pet.clock())
    await bot.hears(*slack.mentions("UANA", "hello?", channel=GENERAL))
    assert server.asked == []


async def test_events_that_nobody_listens_to_are_acknowledged(bot: Any, slack: SlackServer) -> None:
    await slack.deliver(slack.event({"type": "reaction_added", "user": "UANA", "item": {}}))
    assert slack.messages == []


async def test_an_event_is_acknowledged_while_the_model_still_thinks(
    bot: Any, slack: SlackServer, server: ScriptedServer
) -> None:
    server.script(Hang())
    await slack.deliver(slack.says("UANA", "hello", channel=DM))
    await slack.until(lambda: server.asked)
    assert slack.in_channel(DM) == []
    await bot.hachi.conversations.stop(grace=0)


async def test_a_message_that_cannot_be_noted_is_left_for_slack_to_send_again(
    bot: Any, slack: SlackServer, server: ScriptedServer, rows: Callable[..., Any]
) -> None:
    rows("ALTER TABLE deliveries RENAME TO elsewhere")
    message = slack.says("UANA", "hello", channel=DM)
    lost = await slack.send(message)
    await slack.deliver(slack.event({"type": "reaction_added", "user": "UANA", "item": {}}))
    rows("ALTER TABLE elsewhere RENAME TO deliveries")
    server.script(answer("Hello!"))
    await bot.hears(message)
    assert lost not in slack.acknowledged
    assert [message.text for message in slack.in_channel(DM)] == ["Hello!"]
