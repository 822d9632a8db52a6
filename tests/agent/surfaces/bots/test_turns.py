"""What people write becomes turns: in order, one at a time in a conversation, and always answered."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from scripted_server import Fail, Hang, ScriptedServer, answer

from agent import Companion
from agent.surfaces.bots.faults import BROKEN
from agent.surfaces.bots.turns import MOST_WAITING, TOO_MANY, Said, Turns
from memory.audience import PRIVATE, Place

GENERAL = Place(("chat", "acme", "general"))


def ana(text: str, **other: Any) -> Said:
    return Said("chat:1", "Ana", text, **{"place": GENERAL} | other)


def ben(text: str, **other: Any) -> Said:
    return Said("chat:2", "Ben", text, **{"place": GENERAL} | other)


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - what is waited for happens in the server and in the turn
            await asyncio.sleep(0.002)


async def test_a_conversation_may_have_a_name_of_its_own(
    turns: Turns, channel: Any, server: ScriptedServer, rows: Callable[..., list[dict[str, Any]]]
) -> None:
    server.script(answer("one"), answer("two"))
    turns.hear(ana("hello", conversation="topic 1"))
    turns.hear(ana("hello", conversation="topic 2"))
    await turns.settle()
    assert sorted(channel.said) == ["one", "two"]
    names = {row["conversation_id"] for row in rows("SELECT conversation_id FROM messages")}
    assert names == {"topic 1", "topic 2"}


async def test_what_is_written_is_answered_where_it_was_written(
    turns: Turns, channel: Any, server: ScriptedServer
) -> None:
    server.script(answer("Hello Ana!"))
    assert turns.hear(ana("hello", where="message 1"))
    await turns.settle()
    assert channel.said == ["Hello Ana!"]
    assert channel.replies[0].to.where == "message 1"
    assert (channel.was_busy, channel.busy_now) == (1, 0)
    assert "".join(channel.replies[0].texts[-1:]) in ("Hello Ana!", "")


async def test_a_burst_of_one_person_is_one_turn(turns: Turns, channel: Any, server: ScriptedServer) -> None:
    server.script(answer("Congratulations!"))
    for number, text in enumerate(("guess what", "I got the job", "in Lyon!")):
        turns.hear(ana(text, where=number))
    await turns.settle()
    assert channel.said == ["Congratulations!"]
    assert channel.replies[0].to.where == 2
    assert "guess what\n  I got the job\n  in Lyon!" in server.asked[0].conversation[-1][1]


async def test_more_is_waited_for_a_moment(
    turns: Turns, channel: Any, time: Any, server: ScriptedServer
) -> None:
    server.script(answer("I see."))
    time.going.clear()
    turns.hear(ana("my sister"))
    await until(lambda: channel.busy_now)
    turns.hear(ana("is called Lucie"))
    time.going.set()
    await turns.settle()
    assert channel.said == ["I see."]
    assert "my sister\n  is called Lucie" in server.asked[0].text


async def test_two_people_in_one_channel_are_answered_in_order(
    turns: Turns, channel: Any, server: ScriptedServer
) -> None:
    server.script(answer("Hi Ana."), answer("Hi Ben."), answer("Yes, Ana?"))
    for said in (ana("hello"), ben("hello too"), ana("me again")):
        turns.hear(said)
    await turns.settle()
    assert channel.said == ["Hi Ana.", "Hi Ben.", "Yes, Ana?"]
    assert ("user", "Ana: hello") in server.asked[1].conversation
    assert server.asked[1].conversation[-1][1].endswith("hello too")
    assert [reply.to.author for reply in channel.replies] == ["Ana", "Ben", "Ana"]


async def test_what_comes_while_a_turn_is_taken_is_one_turn_after_it(
    turns: Turns, channel: Any, server: ScriptedServer
) -> None:
    server.script(answer("First."), answer("Second."))
    turns.hear(ana("one"))
    await until(lambda: server.asked)
    turns.hear(ana("two"))
    turns.hear(ana("three"))
    await turns.settle()
    assert channel.said == ["First.", "Second."]
    assert "two\n  three" in server.asked[1].conversation[-1][1]


async def test_one_conversation_does_not_wait_for_another(
    turns: Turns, channel: Any, server: ScriptedServer
) -> None:
    server.script(Hang(), answer("Hi Ben."))
    turns.hear(ana("hello", place=PRIVATE))
    await until(lambda: server.asked)
    turns.hear(ben("hello", place=PRIVATE))
    await until(lambda: "Hi Ben." in channel.said)
    await turns.stop(0)
    assert server.unused == 0


async def test_a_turn_that_fails_is_answered_with_what_to_do_and_its_trace(
    turns: Turns, channel: Any, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.script(Fail(503, "rack 7 is on fire"), answer("Here I am."))
    turns.hear(ana("hello"))
    await turns.settle()
    turns.hear(ana("hello?"))
    await turns.settle()
    failed, fine = channel.said
    assert "Please try again" in failed
    trace_id = failed.rpartition("(")[2].rstrip(")")
    assert trace_id.startswith("trace_")
    assert trace_id in caplog.text
    assert "rack" not in failed
    assert fine == "Here I am."


async def test_a_message_that_cannot_be_read_is_told_why(turns: Turns, channel: Any) -> None:
    turns.hear(ana("x" * 100_001))
    await turns.settle()
    assert "send it in parts" in channel.said[0]


async def test_what_nobody_foresaw_is_told_as_that(
    pet: Companion, turns: Turns, channel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pet, "settings", None)
    turns.hear(ana("hello"))
    await turns.settle()
    assert channel.said[0].startswith(BROKEN)
    assert "NoneType" not in channel.said[0]


async def test_machines_are_not_answered(turns: Turns, channel: Any, server: ScriptedServer) -> None:
    assert not turns.hear(ana("beep", bot=True))
    await turns.settle()
    assert (channel.replies, server.asked) == ([], [])


async def test_a_loop_is_told_once_and_then_broken(
    turns_with: Callable[..., Turns], channel: Any, time: Any, server: ScriptedServer
) -> None:
    """Two machines of which the other passes for a person: it answers whatever it hears."""
    turns = turns_with(most=3, gather=0.0)
    server.script(*(answer(f"Answer {number}") for number in range(4)))
    for number in range(10):
        turns.hear(ana(f"and again {number}"))
        await turns.settle()
    assert channel.said == ["Answer 0", "Answer 1", "Answer 2", TOO_MANY]
    time.now += 60
    turns.hear(ana("and now"))
    await turns.settle()
    assert channel.said[-1] == "Answer 3"


async def test_a_loop_elsewhere_does_not_count(
    turns_with: Callable[..., Turns], channel: Any, server: ScriptedServer
) -> None:
    turns = turns_with(most=1, gather=0.0)
    server.script(answer("one"), answer("two"))
    turns.hear(ana("hello"))
    turns.hear(ana("hello", place=PRIVATE))
    await turns.settle()
    assert sorted(channel.said) == ["one", "two"]


async def test_no_more_waits_than_can_be_answered(turns: Turns, time: Any) -> None:
    time.going.clear()
    taken = [turns.hear(ben("!") if number % 2 else ana("!")) for number in range(MOST_WAITING + 5)]
    assert taken.count(False) == 5
    await turns.stop(0)


async def test_what_was_remembered_comes_with_the_reply(
    turns: Turns, channel: Any, server: ScriptedServer
) -> None:
    fact = {"content": "Lucie is allergic to nuts", "ttl": "7d"}
    server.script(answer("I will remember.", fact), answer("I know.", fact))
    for text in ("Lucie is allergic to nuts", "I said, she is"):
        turns.hear(ana(text))
        await turns.settle()
    [receipt] = channel.replies[0].receipts
    assert (receipt.content, receipt.undo) == ("Lucie is allergic to nuts", "delete")
    assert receipt.expires_at is not None
    assert channel.replies[1].receipts == ()


async def test_what_is_attached_is_read_when_its_turn_comes(
    turns: Turns, channel: Any, server: ScriptedServer
) -> None:
    async def notes() -> str:
        return "[file notes.txt]\nbuy milk"

    async def broken() -> str:
        raise ConnectionError

    server.script(answer("Milk it is."), answer("I could not read it."))
    turns.hear(ana("see here", attached=notes))
    turns.hear(ben("and here", attached=broken))
    await turns.settle()
    assert channel.said == ["Milk it is.", "I could not read it."]
    assert "see here\n  \n  [file notes.txt]\n  buy milk" in server.asked[0].text


async def test_a_reply_that_cannot_be_shown_does_not_stop_the_next(
    turns: Turns, channel: Any, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.script(answer("one"), answer("two"))
    channel.away = True
    turns.hear(ana("hello"))
    await turns.settle()
    channel.away = False
    turns.hear(ana("hello?"))
    await turns.settle()
    assert channel.said == [None, "two"]
    assert "could not be shown" in caplog.text


async def test_a_stage_that_breaks_loses_one_turn_and_no_more(
    turns: Turns, channel: Any, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script(answer("two"))
    with monkeypatch.context() as patch:
        patch.setattr(channel, "busy", lambda said: 1 / 0)
        turns.hear(ana("hello"))
        await turns.settle()
    turns.hear(ana("hello?"))
    await turns.settle()
    assert channel.said == ["two"]


async def test_what_was_heard_is_answered_before_the_bot_stops(
    turns: Turns, channel: Any, server: ScriptedServer
) -> None:
    server.script(answer("Good night."))
    turns.hear(ana("good night"))
    await turns.stop()
    assert channel.said == ["Good night."]
    assert not turns.hear(ana("still there?"))


async def test_a_turn_that_takes_too_long_is_broken_off_when_the_bot_stops(
    turns: Turns, channel: Any, server: ScriptedServer
) -> None:
    server.script(Hang())
    turns.hear(ana("hello"))
    await until(lambda: server.asked)
    await turns.stop(0.01)
    assert (channel.said, channel.busy_now) == ([None], 0)


async def test_quiet_conversations_leave_nothing_behind(
    turns: Turns, time: Any, server: ScriptedServer
) -> None:
    server.script(*(answer("Hello.") for _ in range(4)))
    for number in range(4):
        turns.hear(ana("hello", place=Place(("chat", "acme", str(number)))))
        await turns.settle()
        time.now += 120
    assert len(turns._talks) == 1
