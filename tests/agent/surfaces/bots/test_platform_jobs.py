"""Where a reminder is delivered, what is said of the model, and the jobs that need the platform."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from scripted_server import ScriptedServer, answer

from agent.surfaces.bots import platform_jobs
from agent.surfaces.bots.answers import Answer
from agent.surfaces.bots.conversations import IS_LATE, Conversations
from agent.surfaces.bots.platform import Content, IncomingMessage
from agent.surfaces.bots.platform_jobs import FORGOTTEN, NOTICED, REMINDER_WAITS, PlatformJobs, who_answers
from hachi import Settings
from memory.audience import PRIVATE, Place
from memory.people.due_tasks import Reminder

ANA = "chat:1"
WAITING = "SELECT * FROM work WHERE kind IN ('answer', 'posts')"


def ana(text: str, **given: Any) -> IncomingMessage:
    return IncomingMessage(ANA, **{"place": GENERAL, "source": Content("Ana", text)} | given)


REMINDER = "⏰ “call Lucie”"
GENERAL, LAST = Place(("chat", "acme", "general")), Place(("chat", "acme", "random"))


@pytest.mark.parametrize(
    ("place", "open_", "delivered"),
    [
        (GENERAL, {GENERAL, PRIVATE}, [(GENERAL, REMINDER, "chat:9")]),
        (PRIVATE, {GENERAL, PRIVATE}, [(PRIVATE, REMINDER, "chat:9")]),
        (GENERAL, {PRIVATE}, [(PRIVATE, REMINDER)]),
        (GENERAL, {LAST}, [(LAST, REMINDER_WAITS.text)]),
        (PRIVATE, {GENERAL}, []),
    ],
)
async def test_the_place_comes_first_then_direct_messages_then_a_hint_where_they_spoke_last(
    jobs: PlatformJobs,
    platform: Any,
    monkeypatch: pytest.MonkeyPatch,
    place: Place,
    open_: set[Place],
    delivered: list[tuple[Any, ...]],
) -> None:
    pet = jobs.conversations.pet
    message = {"author": "Ana", "text": "hello", "sent_at": pet.clock()}
    await pet.conversations.import_messages([message], user=ANA, place=LAST)
    sent: list[tuple[Any, ...]] = []

    async def write(user: str, where: Place, answer: Answer, *asked_in: str) -> str:
        if where in open_:
            sent.append((where, answer.text, *asked_in))
        return "chat:10" if where in open_ else ""

    monkeypatch.setattr(platform, "write", write)
    task = (await pet.tasks.update("call Lucie", user=ANA, place=place)).task
    whole = any(text == REMINDER for _, text, *_ in delivered)
    reached = await jobs.remind(Reminder(task, place, "c", "chat:9"), "")
    assert reached == ("chat:10" if whole else bool(delivered)), "a hint has none of its text to bring back"
    assert sent == delivered


def test_it_is_said_which_model_answers() -> None:
    assert "stand-in" in who_answers(Settings.load(openai_api_key=None))
    named = Settings.load(openai_api_key="sk-test", model="tiny")
    assert who_answers(named) == "the model tiny at OpenAI answers"


@pytest.fixture
def jobs(conversations: Conversations) -> PlatformJobs:
    return PlatformJobs(conversations, "chat")


async def do(jobs: PlatformJobs) -> None:
    await jobs.do()
    await jobs.conversations.settle()


@pytest.mark.parametrize(("keeps", "fixed", "left"), [(True, False, FORGOTTEN), (False, True, "")])
async def test_a_reply_that_may_not_be_deleted_stands_as_one_line_and_one_that_may_not_be_edited_is_deleted(
    jobs: PlatformJobs, platform: Any, server: ScriptedServer, rows: Any, keeps: bool, fixed: bool, left: str
) -> None:
    server.script(answer("4711, noted."))
    await jobs.conversations.receive(ana("my PIN is 4711", origin="chat:1"), "mentions")
    await jobs.conversations.settle()
    platform.replies[0].keeps, platform.replies[0].fixed = keeps, fixed
    if keeps:
        await jobs.conversations.pet.people.erase(user="chat:1")
    else:
        await jobs.conversations.deleted("chat:1")
    await do(jobs)
    assert platform.said == [left]
    assert rows(WAITING) == []


async def test_what_was_accepted_before_a_restart_is_answered_once_or_told_to_be_late(
    conversations_with: Any, platform: Any, server: ScriptedServer, clock: Any, rows: Any
) -> None:
    killed, next_start = conversations_with(), PlatformJobs(conversations_with(), "chat")
    for number in (1, 2):
        question = ana(f"question {number}", origin=f"chat:{number}", place=GENERAL)
        platform.there[question.origin] = question
        await killed.stop(0)  # it accepts the event, and does no more
        await killed.receive(question, "mentions")
        await killed.receive(question, "mentions")
        await killed.stop(0)
        clock.advance(minutes=11 * (number == 2))
        server.script(answer(f"Answer {number}"))
        await do(next_start)
        await do(next_start)
    await killed.receive(gone := ana("gone", origin="chat:3"), "mentions")
    await killed.stop(0)
    assert gone.origin not in platform.there
    await do(next_start)
    assert platform.said == ["Answer 1", IS_LATE]
    assert rows(WAITING) == []


async def test_what_the_platform_does_not_show_any_more_is_not_answered_and_not_tried_again(
    conversations_with: Any, platform: Any, server: ScriptedServer, rows: Any
) -> None:
    killed, next_start = conversations_with(), PlatformJobs(conversations_with(), "chat")
    await killed.stop(0)
    await killed.receive(question := ana("question", origin="chat:1"), "mentions")
    await killed.stop(0)
    platform.unreadable.add(question.origin)
    await do(next_start)
    assert (platform.said, server.asked, rows(WAITING)) == ([], [], [])


async def test_a_reply_that_could_not_be_shown_is_shown_once_the_platform_is_back(
    jobs: PlatformJobs, platform: Any, server: ScriptedServer, clock: Any, rows: Any
) -> None:
    platform.away = True
    question = platform.there["chat:1"] = ana("hello", origin="chat:1")
    server.script(answer("Here I am."))
    await jobs.conversations.receive(question, "mentions")
    await jobs.conversations.settle()
    platform.away = False
    clock.advance(seconds=2)
    await do(jobs)
    assert platform.said == ["", "Here I am."]
    assert len(server.asked) == 1
    assert rows(WAITING) == []


async def test_a_job_that_fails_waits_and_the_others_are_done(
    jobs: PlatformJobs, platform: Any, server: ScriptedServer, clock: Any, monkeypatch: Any
) -> None:
    fetch, broken = platform.fetch, ["chat:1"]

    async def failing(origin: str) -> Any:
        if origin in broken:
            raise ConnectionError("the platform is away")
        return await fetch(origin)

    monkeypatch.setattr(platform, "fetch", failing)
    deliveries = jobs.conversations.pet.conversations.deliveries
    for number in (1, 2):
        question = platform.there[f"chat:{number}"] = ana("hello", origin=f"chat:{number}")
        job = await deliveries.accept(question.origin, question.user, clock())
        await deliveries.release([job], clock())
    server.script(answer("One."), answer("Two."))
    await do(jobs)
    assert platform.said == ["One."]
    broken.clear()
    clock.advance(seconds=2)
    await do(jobs)
    assert platform.said == ["One.", "Two."]


async def test_the_bot_is_there_only_with_a_connection_since_which_nothing_is_missed(
    conversations: Conversations, clock: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(platform_jobs, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(platform_jobs, "NOTED_EVERY", timedelta())
    caught_up: list[datetime] = []
    line: list[object | None] = ["first"]
    failing = [True]

    async def catch_up(since: datetime) -> None:
        caught_up.append(since)
        if failing[0]:
            raise ConnectionError("the platform is away again")

    jobs = PlatformJobs(conversations, "chat", catch_up, lambda: line[0])
    deliveries, began = conversations.deliveries, clock()
    async with jobs.running():
        await eventually(lambda: deliveries.last_here("chat"), began)
        line[0] = None
        await asyncio.sleep(0.05)
        clock.advance(minutes=5)
        await asyncio.sleep(0.05)
        assert await deliveries.last_here("chat") == began
        line[0] = "second"
        await eventually(lambda: asyncio.sleep(0, len(caught_up) > 2), True)
        assert await deliveries.last_here("chat") == began, "not all is read yet"
        failing[0] = False
        await eventually(lambda: deliveries.last_here("chat"), clock())
    assert set(caught_up) == {began - NOTICED}


async def eventually(read: Callable[[], Awaitable[Any]], wanted: Any) -> None:
    async with asyncio.timeout(10):
        while await read() != wanted:  # noqa: ASYNC110 - what is waited for happens in the database
            await asyncio.sleep(0.002)


async def test_the_heartbeat_is_touched_while_the_bot_is_connected(
    jobs: PlatformJobs, tmp_path: Path
) -> None:
    jobs.heartbeat = tmp_path / "beat"
    for session in (None, "session"):
        jobs.connection = lambda session=session: session  # type: ignore[misc]
        await jobs.do()
        await jobs._follow_connection()
        assert jobs.heartbeat.exists() is bool(session)
