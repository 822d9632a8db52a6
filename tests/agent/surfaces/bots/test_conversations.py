"""Messages become turns: in order, one at a time in a conversation, and always answered."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from scripted_server import Fail, Hang, Say, ScriptedServer, answer

from agent.surfaces.bots.answers import UNEXPECTED
from agent.surfaces.bots.attachments.attachment import Attachment
from agent.surfaces.bots.conversations import MAX_WAITING, TOO_MANY, TOO_MANY_TODAY, Conversations
from agent.surfaces.bots.platform import (
    Content,
    IncomingMessage,
    NearbyMessage,
    Thread,
    continues,
    should_answer,
)
from agent.surfaces.bots.reading import ReadablePlaces
from agent.surfaces.bots.turns import STOPPED
from agent.tracing.store.filters import TraceFilter
from hachi.testing import AnsweringModel, tool_call
from memory.audience import PRIVATE, Place
from memory.errors import NotFound

GENERAL = Place(("chat", "acme", "general"))

LEFT = "SELECT text FROM messages WHERE id NOT IN (SELECT row_id FROM hidden)"
"""The messages that are not hidden."""


def ana(text: str, *attachments: Attachment, **other: Any) -> IncomingMessage:
    given = {"place": GENERAL, "source": Content("Ana", text, attachments)}
    return IncomingMessage("chat:1", **given | other)


def ben(text: str, **other: Any) -> IncomingMessage:
    return IncomingMessage("chat:2", **{"place": GENERAL, "source": Content("Ben", text)} | other)


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - what is waited for happens in the server and in the turn
            await asyncio.sleep(0.002)


@pytest.mark.parametrize(
    ("listening", "addressed", "to_others", "in_thread", "answered"),
    [
        ("mentions", True, True, False, True),
        ("mentions", False, False, False, False),
        ("mentions", False, False, True, None),
        ("mentions", False, True, True, False),
        ("everything", False, False, True, True),
        ("everything", False, True, False, False),
        ("nothing", True, False, True, False),
    ],
)
def test_a_message_is_answered_by_what_is_listened_to(
    listening: Any, addressed: bool, to_others: bool, in_thread: bool, answered: bool | None
) -> None:
    marks = {"addressed": addressed, "to_others": to_others, "in_thread": in_thread}
    assert should_answer(listening, ana("hello", **marks)) is answered


CALL, BOT, ANA, BEN = (
    NearbyMessage("ana", addressed=True),
    NearbyMessage(""),
    NearbyMessage("ana"),
    NearbyMessage("ben"),
)
TO_BEN = NearbyMessage("ana", to_others=True)


@pytest.mark.parametrize(
    ("thread", "by_ana", "by_ben"),
    [
        ([], False, False),
        ([ANA], False, False),
        ([BOT], True, True),
        ([CALL], True, False),
        ([CALL._replace(to_others=True)], True, False),
        ([CALL, BOT], True, True),
        ([CALL, BOT, ANA, BOT], True, False),
        ([CALL, BOT, BEN, BOT], False, True),
        ([CALL, BOT, BEN], False, True),
        ([CALL, BOT, TO_BEN], False, False),
        ([CALL, BEN, BOT], True, True),
        ([CALL, BOT, BEN, ANA, CALL, BOT], True, True),
        ([CALL, BOT, ANA, BEN, BOT, ANA], False, False),
    ],
)
def test_a_thread_goes_on_with_one_person_and_not_where_people_talk(thread, by_ana, by_ben) -> None:
    assert (continues("ana", thread), continues("ben", thread)) == (by_ana, by_ben)


async def test_people_in_one_channel_are_answered_in_order(conversations, platform, server) -> None:
    server.script(answer("Hi Ana."), answer("Hi Ben."), answer("Yes, Ana?"))
    conversations.add(ana("hello"))
    await until(lambda: server.asked)
    for message in (ben("hello too"), ana("me"), ana("again")):
        conversations.add(message)
    await conversations.settle()
    assert platform.said == ["Hi Ana.", "Hi Ben.", "Yes, Ana?"]
    assert ("user", "Ana: hello") in server.asked[1].conversation
    assert server.asked[1].conversation[-1][1].endswith("hello too")
    assert "me\n  again" in server.asked[2].conversation[-1][1]


async def test_one_conversation_does_not_wait_for_another(conversations, platform, server) -> None:
    server.script(Hang(), answer("Hi Ben."))
    conversations.add(ana("hello", place=PRIVATE))
    await until(lambda: server.asked)
    conversations.add(ben("hello", place=PRIVATE))
    await until(lambda: len(platform.replies) > 1 and platform.replies[1].receipts is not None)
    await conversations.stop(0.01)
    assert platform.said == [STOPPED, "Hi Ben."]
    assert platform.busy.count(True) == platform.busy.count(False) == 2


async def test_a_failed_turn_is_answered_with_what_to_do_and_its_trace_id(
    conversations: Conversations,
    platform: Any,
    server: ScriptedServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.script(Fail(503, "rack 7 is on fire"), answer("Here I am."))
    for text in ("hello", "hello?", "x" * 100_001):
        conversations.add(ana(text))
        await conversations.settle()
    failed, fine, too_long = platform.said
    assert "Please try again" in failed
    assert failed.rpartition("(")[2].rstrip(")") in caplog.text
    assert "rack" not in failed
    assert fine == "Here I am."
    assert "send it in parts" in too_long
    monkeypatch.setattr(platform, "read", lambda message, **_: 1 / 0)
    conversations.add(ana("hello"))
    await conversations.settle()
    assert platform.said[-1].startswith(UNEXPECTED)
    assert "division" not in platform.said[-1]


async def test_a_person_has_so_many_turns_a_day_and_others_theirs(
    pet: Any, conversations_with: Any, platform: Any, server: ScriptedServer, clock: Any, monkeypatch: Any
) -> None:
    allowed = pet.settings.model_copy(update={"bot_daily_turns": 2})
    monkeypatch.setattr(type(pet), "settings", allowed)
    conversations = conversations_with(burst_seconds=0.0)
    server.script(*(answer(f"Answer {number}") for number in range(4)))
    for place in (GENERAL, PRIVATE, GENERAL, PRIVATE):
        conversations.add(ana("and again", place=place))
        await conversations.settle()
    conversations.add(ben("and me?"))
    await conversations.settle()
    assert platform.said == ["Answer 0", "Answer 1", TOO_MANY_TODAY, "Answer 2"]
    clock.advance(days=1)
    conversations.add(ana("good morning"))
    await conversations.settle()
    assert platform.said[-1] == "Answer 3"


async def test_only_so_many_messages_wait_and_who_wrote_more_is_told_once(
    conversations_with: Callable[..., Conversations], platform: Any, server: ScriptedServer
) -> None:
    conversations = conversations_with(burst_seconds=0.0)
    server.script(answer("Hello all."), answer("I see."))
    conversations.add(ana("hello"))
    await until(lambda: server.asked)
    queued = [conversations.add(ben(f"{number}")) for number in range(MAX_WAITING + 5)]
    assert queued.count(False) == 5
    await conversations.settle()
    assert platform.said == ["Hello all.", TOO_MANY, "I see."]
    assert conversations._conversations == {}, "an idle conversation leaves nothing behind"


async def test_a_platform_that_fails_does_not_stop_the_next_turn(
    conversations: Conversations,
    platform: Any,
    server: ScriptedServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def busy(message: IncomingMessage) -> None:
        raise ConnectionError("the platform is away")

    server.script(answer("one"), answer("two"))
    platform.away = True
    monkeypatch.setattr(platform, "show_busy", busy)
    conversations.add(ana("hello"))
    await conversations.settle()
    assert "could not be shown" in caplog.text
    with monkeypatch.context() as patch:
        patch.setattr(platform, "reply_to", lambda message: 1 / 0)
        conversations.add(ana("hello?"))
        await conversations.settle()
    assert "a turn is lost" in caplog.text
    platform.away = False
    conversations.add(ana("hello??"))
    await conversations.settle()
    assert platform.said == ["", "two"]


async def test_what_is_being_forgotten_is_forgotten_before_the_bot_stops(conversations, server, rows) -> None:
    server.script(answer("Noted."))
    conversations.add(ana("my PIN is 4711", origin="chat:1"))
    await conversations.settle()
    deleting = asyncio.create_task(conversations.deleted("chat:1"))
    await asyncio.sleep(0)
    await conversations.stop()
    assert rows(LEFT) == []
    await deleting


async def test_what_is_left_of_a_burst_is_answered_once_a_part_of_it_is_deleted(
    conversations_with: Any, platform: Any, server: ScriptedServer, rows: Any
) -> None:
    async def fetch(_: int) -> bytes:
        await conversations.deleted("chat:1")
        return b"4711"

    conversations = conversations_with(burst_seconds=0.2)
    server.script(answer("Hello."))
    for message in (
        ana("hello", origin="chat:2"),
        ana("my PIN", Attachment("notes.txt", "", 4, fetch), origin="chat:1"),
        ben("it is 4712", origin="chat:3"),
    ):
        await conversations.receive(message, "mentions")
    for origin in ("chat:3", "chat:unknown"):
        await conversations.deleted(origin)
    await conversations.settle()
    assert [said for said in platform.said if said] == ["Hello."], "what was begun is withdrawn"
    assert [row["text"] for row in rows("SELECT text FROM messages ORDER BY seq")] == ["hello", "Hello."]


def edited(message: IncomingMessage, text: str, version: str = "1") -> IncomingMessage:
    return replace(message, source=Content("Ana", text), version=version)


async def test_an_edited_message_is_answered_again_in_place_for_some_minutes(
    conversations: Conversations, platform: Any, server: ScriptedServer, rows: Any, clock: Any
) -> None:
    fact = {"content": "Ana lives in Pari", "ttl": "never"}
    server.script(answer("Pari?", fact), answer("Hello."), answer("Paris!"))
    question = ana("I live in Pari", origin="chat:1")
    await conversations.receive(question, "mentions")
    await conversations.settle()
    conversations.add(ben("hello", origin="chat:2"))
    for _ in range(2):  # a platform may tell of it twice
        await conversations.edited(edited(question, "I live in Paris"), "mentions")
        await conversations.settle()
    assert platform.said == ["Paris!", "Hello."]
    assert len(server.asked) == 3
    said = {row["text"] for row in rows(LEFT)}
    assert said == {"I live in Paris", "Paris!", "hello", "Hello."}
    assert await conversations.pet.memories.list(user="chat:1", place=GENERAL) == []
    clock.advance(minutes=11)
    await conversations.edited(edited(question, "I live in Lyon", "2"), "mentions")
    await conversations.settle()
    assert platform.said == ["Paris!", "Hello."]
    assert {row["text"] for row in rows(LEFT)} == {"I live in Lyon", "Paris!", "hello", "Hello."}
    await conversations.deleted("chat:1")
    assert {row["text"] for row in rows(LEFT)} == {"hello", "Hello."}


async def test_a_message_that_is_edited_while_it_waits_is_read_as_it_is_now(
    conversations: Conversations, platform: Any, server: ScriptedServer, rows: Any
) -> None:
    server.script(Say('{"message": "Two cups.", "memories": []}', pause=0.02), answer("With milk."))
    await conversations.receive(ana("two cups", origin="chat:1"), "mentions")
    waiting = ben("with mlik", origin="chat:2")
    await conversations.receive(waiting, "mentions")
    await until(lambda: platform.replies)
    await conversations.edited(replace(waiting, source=Content("Ben", "with milk")), "mentions")
    await conversations.settle()
    assert platform.said == ["Two cups.", "With milk."]
    said = [row["text"] for row in rows(f"{LEFT} ORDER BY seq")]
    assert said == ["two cups", "Two cups.", "with milk", "With milk."]


async def test_a_part_of_a_burst_that_is_edited_is_read_with_the_others(
    conversations_with: Any, platform: Any, server: ScriptedServer
) -> None:
    conversations = conversations_with(burst_seconds=0.2)
    server.script(answer("Noted."), answer("Noted again."))
    parts = [ana(text, origin=f"chat:{number}") for number, text in enumerate(("one", "tow", "three"))]
    platform.there = {part.origin: part for part in parts}
    for part in parts:
        await conversations.receive(part, "mentions")
    await conversations.settle()
    await conversations.edited(edited(parts[1], "two"), "mentions")
    await conversations.settle()
    assert platform.said == ["Noted again."]
    assert "one\n  two\n  three" in server.asked[1].conversation[-1][1]


async def test_a_reply_that_somebody_deletes_is_forgotten_and_the_question_is_not(
    conversations: Conversations, platform: Any, server: ScriptedServer, rows: Any
) -> None:
    server.script(answer("Tea."))
    await conversations.receive(ana("tea or coffee?", origin="chat:1"), "mentions")
    await conversations.settle()
    posts = platform.replies[0]
    await conversations.deleted(posts.origin(next(iter(posts.messages))))
    assert [row["text"] for row in rows(LEFT)] == ["tea or coffee?"]


async def test_what_a_trace_quotes_of_others_goes_when_it_is_deleted_on_the_platform(
    conversations: Conversations, server: ScriptedServer
) -> None:
    pet, quote = (
        conversations.pet,
        {"replies_to": NearbyMessage("chat:2", False, False, "chat:7", "Ben: my PIN is 4711")},
    )
    server.script(answer("I see."))
    message = ana("what is that?", origin="chat:1", source=Content("Ana", "what is that?", **quote))
    await conversations.receive(message, "mentions")
    await conversations.settle()
    await pet.settle()
    [trace] = await pet.traces.list(TraceFilter(user="chat:1"), pet.clock())
    assert "4711" in str(await pet.traces.get(trace.id, pet.clock()))
    await conversations.deleted("chat:7")
    with pytest.raises(NotFound, match="forgotten"):
        await pet.traces.get(trace.id, pet.clock())


async def test_a_thread_of_others_is_shown_without_who_wants_nothing_kept_and_what_was_said_to_the_bot(
    conversations: Conversations, platform: Any, server: ScriptedServer
) -> None:
    await conversations.pet.people.keep(False, user="chat:3", place=PRIVATE)
    soup = NearbyMessage("chat:2", origin="chat:20", source="Ben: soup?")
    secret = NearbyMessage("chat:3", origin="chat:21", source="Cleo: my PIN is 4711")
    asked = NearbyMessage("chat:1", addressed=True, origin="chat:22", source="Ana: what was asked before")
    platform.around = Thread([soup, secret, asked], "Lunch")
    server.script(answer("Soup."))
    await conversations.receive(ana("and now?", origin="chat:9", in_thread=True), "mentions")
    await conversations.settle()
    told = "> The thread is called “Lunch”.\n> Before it in the thread:\n> Ben: soup?\n"
    assert told in server.asked[0].context
    assert "4711" not in server.asked[0].context
    assert "asked before" not in server.asked[0].context


@pytest.fixture
def hung(platform: Any, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """The first reply is not shown until this is set."""
    free, reply_to = asyncio.Event(), platform.reply_to

    def posts_of(message: IncomingMessage) -> Any:
        posts = reply_to(message)
        if len(platform.replies) == 1:
            monkeypatch.setattr(posts, "post", partial(later, posts.post))
        return posts

    async def later(post: Callable[..., Any], text: str, *, final: bool) -> int:
        await free.wait()
        return int(await post(text, final=final))

    monkeypatch.setattr(platform, "reply_to", posts_of)
    monkeypatch.setattr("agent.surfaces.bots.conversations.SHOW_SECONDS", 0.01)
    return free


async def test_a_reply_that_cannot_be_shown_now_holds_up_no_other_in_its_channel(
    conversations: Conversations, platform: Any, server: ScriptedServer, hung: asyncio.Event, rows: Any
) -> None:
    server.script(answer("One."), answer("Two."))
    await conversations.receive(ana("first", origin="chat:1"), "mentions")
    await conversations.receive(ben("second", origin="chat:2"), "mentions")
    await until(lambda: len(platform.replies) == 2 and platform.said[1] == "Two.")
    assert platform.said[0] == ""
    hung.set()
    await conversations.settle()
    assert platform.said == ["One.", "Two."]
    assert rows("SELECT * FROM work WHERE kind = 'answer'") == []


async def test_a_stop_leaves_what_is_not_shown_to_the_next_start(
    conversations: Conversations, platform: Any, server: ScriptedServer, hung: asyncio.Event, rows: Any
) -> None:
    server.script(answer("One."), answer("Two."))
    await conversations.receive(ana("first", origin="chat:1"), "mentions")
    await conversations.receive(ben("second", origin="chat:2"), "mentions")
    await until(lambda: len(platform.replies) == 2 and platform.said[1] == "Two.")
    await conversations.stop(0)
    waiting = rows("SELECT about, claimed_by FROM work WHERE kind = 'answer'")
    assert waiting == [{"about": "chat:1", "claimed_by": None}]


async def test_what_a_person_can_read_is_asked_of_the_platform_and_believed_for_ten_minutes(
    platform: Any, clock: Any
) -> None:
    readable, board = ReadablePlaces(platform, clock), Place(("chat", "acme", "board"))
    platform.readable = {GENERAL: "#general"}
    for _ in range(2):
        assert await readable.of("chat:1", [GENERAL, board]) == {GENERAL: "#general"}
    assert len(platform.asked) == 1
    assert await readable.of("chat:2", [GENERAL]) == {GENERAL: "#general"}
    assert platform.asked[1:] == [("chat:2", [GENERAL])]
    platform.readable.clear()
    clock.advance(minutes=9)
    assert await readable.of("chat:1", [GENERAL]) == {GENERAL: "#general"}
    clock.advance(minutes=1)
    assert await readable.of("chat:1", [GENERAL]) == {}
    platform.readable, platform.away = {GENERAL: "#general"}, True
    clock.advance(minutes=10)
    assert await readable.of("chat:1", [GENERAL]) == {}, "what cannot be asked is not readable"
    platform.away = False
    assert await readable.of("chat:1", [GENERAL]) == {GENERAL: "#general"}, "nor is that believed"


@pytest.mark.parametrize("on", [True, False])
async def test_in_direct_messages_the_bot_reads_channels_where_the_operator_allows_it(
    open_pet: Any, platform: Any, on: bool
) -> None:
    search = tool_call("search_memories", query="what was planted?")
    model = AnsweringModel("I see.", "Hello.", search, "A zagavok.")
    pet = await open_pet(given=model, read_places=on)
    talks = Conversations(pet, platform, burst_seconds=0.001)
    platform.readable = {GENERAL: "#general"}
    for message in (ben("I planted a zagavok"), ana("Hello!"), ana("What was planted?", place=PRIVATE)):
        talks.add(message)
        await talks.settle()
    assert ("Ben (in #general): I planted a zagavok" in model.shown()) is on
    assert platform.asked == ([("chat:1", [GENERAL])] if on else [])
