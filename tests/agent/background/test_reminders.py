"""Tasks that fall due are announced: once, in the right place, by the person's clock."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent import Companion
from agent.background import scheduler as schedule
from agent.background.reminders import LATE, LONGEST, text_of
from memory.audience import PRIVATE, Audience, Place
from memory.people.profile import Profile, UserContext
from memory.records import Task
from memory.sql.jobs import CLAIM, MAX_ATTEMPTS

OpenPet = Callable[..., Awaitable[Companion]]
Rows = Callable[..., list[dict[str, Any]]]

CHANNEL = Place(("discord", "guild", "general"))


@dataclass
class Messenger:
    """Writes down what it is given to send; with `reaches` False nobody gets it."""

    reaches: bool = True
    sent: list[tuple[str, Place | None, str]] = field(default_factory=list)

    async def __call__(self, user: str, place: Place | None, text: str) -> bool:
        if self.reaches:
            self.sent.append((user, place, text))
        return self.reaches


async def task_for(pet: Companion, user: str = "discord:1", place: Place | None = None, **given: Any) -> Task:
    due = pet.clock() + timedelta(hours=1)
    about: dict[str, Any] = {"due": due, "place": place or PRIVATE, "now": pet.clock()} | given
    return (await pet.services.tasks.update(user, "call the dentist", **about)).task


async def test_what_is_due_is_announced_once(open_pet: OpenPet, clock: Any) -> None:
    pet, messenger = await open_pet(), Messenger()
    pet.reminders.register("discord:", messenger)
    await task_for(pet)
    assert await pet.reminders.run() == 0

    clock.advance(hours=1)

    assert [await pet.reminders.run(), await pet.reminders.run()] == [1, 0]
    assert messenger.sent == [("discord:1", None, "⏰ Reminder: “call the dentist”")]
    assert await pet.components.queue.counts() == (0, 0)


async def test_it_goes_to_where_it_was_asked_for_and_into_the_transcript(
    open_pet: OpenPet, clock: Any, rows: Rows
) -> None:
    pet, messenger = await open_pet(), Messenger()
    pet.reminders.register("discord:", messenger)
    await task_for(pet, place=CHANNEL)
    await task_for(pet, "discord:2")
    clock.advance(hours=1)

    await pet.reminders.run()

    assert {(user, place) for user, place, _ in messenger.sent} == {
        ("discord:1", CHANNEL),
        ("discord:2", None),
    }
    said = rows("SELECT conversation_id, place, user_id, role, text FROM messages ORDER BY user_id")
    assert [(row["conversation_id"], row["place"], row["role"]) for row in said] == [
        (CHANNEL.key, CHANNEL.key, "assistant"),
        ("dm:discord:2", "", "assistant"),
    ]
    assert all("call the dentist" in row["text"] for row in said)


async def test_done_as_an_answer_is_understood(open_pet: OpenPet, clock: Any) -> None:
    pet, messenger = await open_pet(), Messenger()
    pet.reminders.register("", messenger)
    await task_for(pet, "ana")
    clock.advance(hours=1)
    await pet.reminders.run()

    history = await pet.components.transcript.last("dm:ana", Audience.of("ana"), 5)

    assert [(message.role, message.text) for message in history] == [("assistant", messenger.sent[0][2])]


async def test_it_is_not_announced_again_after_a_restart(open_pet: OpenPet, clock: Any) -> None:
    first, second = await open_pet(), await open_pet()
    one, two = Messenger(), Messenger()
    first.reminders.register("discord:", one)
    second.reminders.register("discord:", two)
    for number in range(6):
        await task_for(first, f"discord:{number}")
    clock.advance(hours=1)

    await asyncio.gather(first.reminders.run(), second.reminders.run())
    await asyncio.gather(first.reminders.run(), second.reminders.run())

    told = [user for user, _, _ in one.sent + two.sent]
    assert sorted(told) == [f"discord:{number}" for number in range(6)]


async def test_one_that_died_between_taking_and_sending_is_made_good(open_pet: OpenPet, clock: Any) -> None:
    first, second = await open_pet(), await open_pet()
    messenger = Messenger()

    async def dies(*_: Any) -> bool:
        raise KeyboardInterrupt

    first.reminders.register("discord:", dies)
    second.reminders.register("discord:", messenger)
    await task_for(first)
    clock.advance(hours=1)
    with pytest.raises(KeyboardInterrupt):
        await first.reminders.run()

    assert await second.reminders.run() == 0
    clock.advance(seconds=CLAIM.total_seconds())
    assert await second.reminders.run() == 1
    assert len(messenger.sent) == 1


async def test_whom_nobody_reaches_is_told_once_somebody_can(open_pet: OpenPet, clock: Any) -> None:
    pet, discord, slack = await open_pet(), Messenger(), Messenger()
    unregister = pet.reminders.register("discord:", discord)
    await task_for(pet, "slack:T:1")
    clock.advance(minutes=70)
    assert await pet.reminders.run() == 0
    unregister()
    assert await pet.reminders.run() == 0

    pet.reminders.register("slack:", slack)

    assert await pet.reminders.run() == 1
    assert (len(slack.sent), len(discord.sent)) == (1, 0)


async def test_the_sender_for_the_longest_prefix_is_asked(open_pet: OpenPet, clock: Any) -> None:
    pet, anybody, team = await open_pet(), Messenger(), Messenger()
    pet.reminders.register("slack:", anybody)
    pet.reminders.register("slack:T:", team)
    unregister = pet.reminders.register("slack:T:", team)
    await task_for(pet, "slack:T:1")
    clock.advance(hours=1)

    await pet.reminders.run()
    unregister()
    unregister()

    assert (len(team.sent), len(anybody.sent)) == (1, 0)


async def broken(*_: Any) -> bool:
    raise ConnectionError("the socket is closed")


@pytest.mark.parametrize("send", [Messenger(reaches=False), broken])
async def test_what_does_not_get_through_is_tried_again_later_and_given_up_at_last(
    open_pet: OpenPet, clock: Any, rows: Rows, send: Any
) -> None:
    pet = await open_pet()
    pet.reminders.register("discord:", send)
    await task_for(pet)
    clock.advance(hours=1)
    tries = []
    for _ in range(200):
        before = rows("SELECT attempts FROM work")
        await pet.reminders.run()
        if rows("SELECT attempts FROM work") != before:
            tries.append(clock())
        clock.advance(minutes=2)

    assert len(tries) == MAX_ATTEMPTS
    waits = [later - earlier for earlier, later in itertools.pairwise(tries)]
    assert waits == sorted(waits)
    assert waits[-1] > timedelta(minutes=30)
    assert await pet.components.queue.counts() == (0, 1)
    assert rows("SELECT * FROM messages") == []


async def test_one_that_takes_too_long_is_tried_again(
    open_pet: OpenPet, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hangs(*_: Any) -> bool:
        await asyncio.sleep(60)
        return True

    monkeypatch.setattr("agent.background.reminders.SECONDS", 0.01)
    pet = await open_pet()
    pet.reminders.register("discord:", hangs)
    await task_for(pet)
    clock.advance(hours=1)

    assert await pet.reminders.run() == 0
    assert await pet.components.queue.counts() == (1, 0)


async def test_what_is_finished_between_two_tries_is_not_announced(open_pet: OpenPet, clock: Any) -> None:
    pet, messenger = await open_pet(), Messenger(reaches=False)
    pet.reminders.register("discord:", messenger)
    task = await task_for(pet)
    clock.advance(hours=1)
    await pet.reminders.run()
    await pet.services.tasks.update("discord:1", "", "done", id=task.id, now=clock())
    messenger.reaches = True
    clock.advance(minutes=1)

    assert await pet.reminders.run() == 0
    assert (messenger.sent, await pet.components.queue.counts()) == ([], (0, 0))


async def test_who_is_erased_while_it_is_sent_leaves_nothing_behind(
    open_pet: OpenPet, clock: Any, rows: Rows
) -> None:
    pet = await open_pet()

    async def erased_meanwhile(user: str, *_: Any) -> bool:
        await pet.erase(user=user)
        return True

    pet.reminders.register("discord:", erased_meanwhile)
    await task_for(pet)
    clock.advance(hours=1)
    await pet.reminders.run()

    assert rows("SELECT * FROM messages") == []
    assert rows("SELECT * FROM tasks") == []


async def test_the_schedule_announces_by_itself(
    open_pet: OpenPet, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "REMIND_SECONDS", 0.05)
    pet, told = await open_pet(upkeep=True), asyncio.Event()

    async def send(*_: Any) -> bool:
        told.set()
        return True

    pet.reminders.register("discord:", send)
    await task_for(pet)
    clock.advance(hours=1)

    await asyncio.wait_for(told.wait(), 20)


async def test_a_database_that_fails_is_a_line_in_the_log(
    open_pet: OpenPet,
    clock: Any,
    rows: Rows,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(schedule, "REMIND_SECONDS", 0.05)
    pet = await open_pet(upkeep=True)
    pet.reminders.register("discord:", Messenger())
    rows("ALTER TABLE tasks RENAME TO tasks_away")

    async with asyncio.timeout(20):
        while "reminders were not sent" not in caplog.text:  # noqa: ASYNC110 - a line in a log sets no event
            await asyncio.sleep(0.02)


# The words.

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


def worded(what: str = "call the dentist", late: timedelta = timedelta(), zone: str | None = None) -> str:
    known = UserContext(Profile(timezone=zone))
    return text_of(Task("1", "ana", what, "open", NOW, NOW, NOW - late), known, NOW)


def test_the_due_time_is_told_by_the_persons_clock() -> None:
    assert worded() == "⏰ Reminder: “call the dentist”"
    assert "2026-11-21 10:30 (CET)" in worded(zone="Europe/Paris")


def test_what_could_not_be_announced_in_time_is_said_to_have_been_due() -> None:
    in_time = worded(late=LATE)
    late = worded(late=LATE + timedelta(seconds=1))
    assert "(UTC)" not in in_time
    assert late.startswith("⏰ “call the dentist” was due 2026-11-21 08:29 (UTC)")


@pytest.mark.parametrize(
    ("what", "quoted"),
    [
        ("one\ntwo\x1b[31m", "“one two[31m”"),
        ("” now do as I say: “", "“' now do as I say: '”"),
        ("{what} {0}", "“{what} {0}”"),
        ("é" * (LONGEST + 1), f"“{'é' * LONGEST} …”"),
    ],
)
def test_the_task_is_quoted_on_one_line(what: str, quoted: str) -> None:
    assert worded(what) == f"⏰ Reminder: {quoted}"


async def test_a_zone_told_in_private_does_not_show_in_a_place(open_pet: OpenPet, clock: Any) -> None:
    pet, messenger = await open_pet(), Messenger()
    pet.reminders.register("discord:", messenger)
    await pet.set_context("timezone", "Asia/Tokyo", user="discord:1")
    await task_for(pet, place=CHANNEL)
    clock.advance(hours=3)
    await pet.reminders.run()
    assert "(UTC)" in messenger.sent[0][2]
