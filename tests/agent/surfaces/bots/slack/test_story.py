"""A morning of two people and the bot on Slack: what they say, edit and forget, and what stands there."""

from collections.abc import Awaitable, Callable
from typing import Any

from scripted_server import Hang, ScriptedServer, answer
from slack_server import BOT, SlackServer

from agent.surfaces.bots.conversations import IS_LATE
from agent.surfaces.bots.running import FORGOTTEN
from memory.audience import Place

DM, GENERAL = "D1", "C1"
ANA = "slack:T1:UANA"
Called = Callable[[set[str], Place], Awaitable[dict[str, set[str]]]]
WAITING = "SELECT * FROM work WHERE kind IN ('answer', 'posts')"


def shown(slack: SlackServer, channel: str = GENERAL) -> list[str]:
    return [message.text for message in slack.in_channel(channel)]


async def test_what_is_edited_deleted_and_forgotten_on_slack_is_so_there_too(
    bot: Any, slack: SlackServer, server: ScriptedServer, pet: Any, clock: Any, rows: Any
) -> None:
    jobs = bot.hachi.jobs("T1")
    # Ana asks in the channel, and corrects herself: the reply is written again where it stands.
    server.script(answer("Two cups."), answer("Three cups."))
    mention, message = slack.mentions("UANA", "tea for two", channel=GENERAL)
    await bot.hears(mention, message)
    asked = message["event"]["ts"]
    await bot.hears(*slack.edits(asked, f"<@{BOT}> tea for three", channel=GENERAL))
    assert shown(slack) == ["Three cups."]
    assert "tea for three" in server.asked[1].conversation[-1][1]
    assert "tea for two" not in server.asked[1].text
    # Ben talks to Ana, and adds a mention later.
    talk = slack.says("UBEN", "milk?", channel=GENERAL)
    await bot.hears(talk)
    server.script(answer("With milk."))
    await bot.hears(*slack.edits(talk["event"]["ts"], f"<@{BOT}> milk?", channel=GENERAL))
    assert shown(slack) == ["Three cups.", "With milk."]
    # Ana forgets it on a page of her own: one line stands there, then the text again, then nothing.
    [said] = [one for one in await pet.conversations.messages(user=ANA) if one.role == "user"]
    forgotten = await pet.conversations.forget(said.id, user=ANA)
    await jobs.do()
    await slack.until(lambda: shown(slack) == [FORGOTTEN, "With milk."])
    await pet.memories.undo_forget(str(forgotten.undo_id), user=ANA)
    await jobs.do()
    await slack.until(lambda: shown(slack) == ["Three cups.", "With milk."])
    # She deletes her question on Slack. The reply goes with it, for good when the time to undo is over.
    await bot.hears(slack.deletes(asked, channel=GENERAL))
    await jobs.do()
    await slack.until(lambda: shown(slack) == [FORGOTTEN, "With milk."])
    clock.advance(minutes=11)
    await pet.admin.purge_undo()
    await jobs.do()
    await slack.until(lambda: shown(slack) == ["With milk."])


async def test_a_question_that_is_deleted_while_it_is_answered_leaves_nothing_and_a_reply_does_not_return(
    bot: Any, slack: SlackServer, server: ScriptedServer, rows: Any
) -> None:
    server.script(Hang('{"message": "4711, you say', 9))
    said = slack.says("UANA", "my PIN is 4711", channel=DM)
    await slack.deliver(said)
    await slack.until(lambda: slack.in_channel(DM))
    await bot.hears(slack.deletes(said["event"]["ts"], channel=DM))
    assert shown(slack, DM) == []
    server.script(Hang('{"message": "Once upon a', 9))
    await slack.deliver(slack.says("UANA", "a story", channel=DM))
    await slack.until(lambda: slack.in_channel(DM))
    [half] = slack.in_channel(DM)
    slack.messages.remove(half)
    gone = {"type": "message", "subtype": "message_deleted", "channel": DM, "deleted_ts": half.ts}
    await bot.hears(slack.event(gone))
    assert shown(slack, DM) == []
    assert rows(WAITING) == []


async def test_two_people_of_one_name_are_told_apart_everywhere_and_a_new_name_is_a_new_label(
    bot: Any, slack: SlackServer, server: ScriptedServer, pet: Any, called: Called, clock: Any
) -> None:
    slack.names["UBEN"] = "Ana"
    replies = map(answer, ("Hello.", "Ben.", "Hi.", "You."))
    server.script(answer("Noted.", {"content": "Rex is a dog"}), *replies)
    for text, user in (("Rex is a dog", "UANA"), ("hello", "UBEN"), ("who is <@UBEN>?", "UANA")):
        await bot.hears(*slack.mentions(user, text, channel=GENERAL, thread_ts="1.5"))
    ben, other = "slack:T1:UBEN", "Ana (slack T1 UBEN)"
    said = [text for role, text in server.asked[-1].conversation if role == "user"]
    assert said == ["Ana: Rex is a dog", f"{other}: hello", f"Ana: who is @{other}?"]
    here = Place(("slack", "T1", GENERAL))
    assert await called({ANA, ben}, here) == {ANA: {"Ana"}, ben: {other}}
    slack.names["UANA"] = "Zoe"
    clock.advance(minutes=61)
    await bot.hears(*slack.mentions("UANA", "it is me", channel=GENERAL, thread_ts="1.5"))
    said = [text for role, text in server.asked[-1].conversation if role == "user"]
    assert said[::3] == ["Zoe: Rex is a dog", "Zoe: it is me"]
    assert await called({ANA, ben}, here) == {ANA: {"Zoe"}, ben: {other}}
    await pet.people.keep(False, user=ANA)
    await bot.hears(*slack.mentions("UANA", "who am I?", channel=GENERAL))
    assert server.asked[-1].conversation[-1][1] == "Zoe: who am I?"


async def test_who_wants_nothing_kept_is_answered_in_a_thread_as_everybody_is(
    bot: Any, slack: SlackServer, server: ScriptedServer, pet: Any, rows: Any
) -> None:
    await pet.people.keep(False, user=ANA, place=Place(("slack", "T1", GENERAL)))
    server.script(answer("One."), answer("Two."))
    await bot.hears(*slack.mentions("UANA", "one", channel=GENERAL, ts="1.5"))
    for text, thread in (("two", "1.5"), ("lunch?", "1.6")):
        await bot.hears(slack.says("UANA", text, channel=GENERAL, thread_ts=thread))
    assert shown(slack) == ["One.", "Two."]
    assert rows("SELECT * FROM messages") == []


async def test_what_was_written_while_the_bot_was_not_there_is_caught_up(
    go_online: Any, slack: SlackServer, server: ScriptedServer, pet: Any, clock: Any, monkeypatch: Any
) -> None:
    slack.epoch = int(clock().timestamp())
    server.script(answer("Hello."), answer("Hello, Ben."), answer("In private."))
    bot = await go_online()
    await bot.hears(slack.says("UANA", "hello", channel=DM))
    await bot.hachi.jobs("T1").do()
    await bot.hachi.conversations.stop()
    slack.epoch += 30
    head = slack.says("UANA", "lunch?", channel=GENERAL)["event"]["ts"]
    slack.says("UBEN", f"<@{BOT}> hello", channel=GENERAL, thread_ts=head)
    slack.says("UANA", "still there?", channel=DM)
    slack.refused["conversations.history"] = "missing_scope"
    later = await go_online()
    await later.hachi._catch_up("T1", clock())
    assert len(server.asked) == 1
    del slack.refused["conversations.history"]
    for _ in range(2):
        await later.hachi._catch_up("T1", clock())
        await later.hachi.conversations.settle()
    assert sorted(shown(slack, GENERAL) + shown(slack, DM)) == ["Hello, Ben.", "Hello.", "In private."]
    slack.says("UANA", "hello again", channel=DM)
    since = clock()
    clock.advance(minutes=20)
    await later.hachi._catch_up("T1", since)
    await later.hachi.conversations.settle()
    assert shown(slack, DM)[-1] == IS_LATE
