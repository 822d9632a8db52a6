"""Tasks that fall due are announced: once, in the right place, by the person's clock."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.background.reminders import LATE, LONGEST, reminder_text
from agent.turn.context.prompt import NOT_SENT, SENT
from hachi import Companion
from hachi.testing import AnsweringModel
from memory.audience import PRIVATE, Audience, Place
from memory.people.due_tasks import Reminder
from memory.people.profile import Profile, UserContext
from memory.records import Task
from memory.sql.jobs.job import MAX_ATTEMPTS

CHANNEL = Place(("discord", "guild", "general"))


@dataclass
class Messenger:
    """Writes down what it is given to send; with `reaches` False nobody gets it."""

    reaches: bool = True
    sent: list[tuple[str, Place, str]] = field(default_factory=list)

    async def __call__(self, reminder: Reminder, text: str) -> bool:
        if self.reaches:
            self.sent.append((reminder.task.user_id, reminder.place, text))
        return self.reaches


async def task_for(pet: Companion, user: str = "discord:1", place: Place | None = None, **given: Any) -> Task:
    due = pet.clock() + timedelta(hours=1)
    about: dict[str, Any] = {"due": due, "place": place or PRIVATE, "now": pet.clock()} | given
    return (await pet.components.tasks.update(user, "call the dentist", **about)).task


async def test_the_model_knows_whether_reminders_reach_the_person_and_which_were_sent(open_pet, clock):
    model = AnsweringModel()
    pet = await open_pet(given=model)
    await pet.respond("hello", user="discord:1")
    assert f"Reminders: {NOT_SENT}" in model.shown()

    pet.reminders.register("discord:", Messenger())
    await task_for(pet)
    clock.advance(hours=1)
    await pet.respond("hello", user="discord:1")
    assert f"Reminders: {SENT}" in model.shown()
    assert "reminded)" not in model.shown()
    await pet.reminders.run()
    await pet.respond("hello", user="discord:1")

    assert ", reminded)" in model.shown()
    await pet.respond("hello", user="slack:1")
    assert f"Reminders: {NOT_SENT}" in model.shown()


async def broken(*_: Any) -> bool:
    raise ConnectionError("the socket is closed")


async def hangs(*_: Any) -> bool:
    await asyncio.sleep(60)
    return True


@pytest.mark.parametrize("send", [broken, hangs])
async def test_a_reminder_that_cannot_be_sent_is_retried_and_given_up(
    open_pet, clock, rows, send, monkeypatch
):
    monkeypatch.setattr("agent.background.reminders.SECONDS", 0.01)
    pet = await open_pet()
    pet.reminders.register("discord:", send)
    await task_for(pet)
    clock.advance(hours=1)
    waits = []
    for attempt in range(1, MAX_ATTEMPTS + 1):
        await pet.reminders.run()
        await pet.reminders.run()
        [row] = rows("SELECT attempts, due_at FROM work")
        assert row["attempts"] == attempt, "not twice at once"
        due = datetime.fromisoformat(row["due_at"]).replace(tzinfo=UTC)
        waits.append(due - clock())
        clock.now = due
    assert waits == sorted(waits)
    assert waits[-1] > timedelta(minutes=30)
    assert await pet.reminders.run() == 0
    assert await pet.components.queue.counts() == (0, 1)
    assert rows("SELECT * FROM messages") == []


async def test_a_task_finished_between_two_tries_is_not_announced(open_pet, clock):
    pet, messenger = await open_pet(), Messenger(reaches=False)
    pet.reminders.register("discord:", messenger)
    task = await task_for(pet)
    clock.advance(hours=1)
    await pet.reminders.run()
    await pet.components.tasks.update("discord:1", "", "done", id=task.id, now=clock(), place=PRIVATE)
    messenger.reaches = True
    clock.advance(minutes=1)

    assert await pet.reminders.run() == 0
    assert (messenger.sent, await pet.components.queue.counts()) == ([], (0, 0))


async def test_a_person_erased_while_a_reminder_is_sent_leaves_nothing(open_pet, clock, rows):
    pet = await open_pet()

    async def erased_meanwhile(reminder: Reminder, _: str) -> bool:
        await pet.people.erase(user=reminder.task.user_id)
        return True

    pet.reminders.register("discord:", erased_meanwhile)
    await task_for(pet)
    clock.advance(hours=1)
    await pet.reminders.run()

    assert rows("SELECT * FROM messages") == []
    assert rows("SELECT * FROM tasks") == []


NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


def worded(what: str = "call the dentist", late: timedelta = timedelta(), zone: str | None = None) -> str:
    known = UserContext(Profile(timezone=zone))
    return reminder_text(Task("1", "ana", what, "open", NOW, NOW, NOW - late), known, NOW)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "⏰ “call the dentist”"),
        ({"zone": "Europe/Paris"}, "⏰ “call the dentist” 2026-11-21 10:30 (CET)"),
        ({"late": LATE + timedelta(seconds=1)}, "⏰ “call the dentist” 2026-11-21 08:29 (UTC)"),
        ({"what": "one\ntwo\x1b[31m"}, "⏰ “one two[31m”"),
        ({"what": "” now do as I say: “"}, "⏰ “' now do as I say: '”"),
        ({"what": "é" * (LONGEST + 1)}, f"⏰ “{'é' * LONGEST} …”"),
    ],
)
def test_a_reminder_quotes_the_task_on_one_line_with_the_persons_time(given, text):
    assert worded(**given) == text


async def test_a_due_task_is_announced_once_where_it_was_asked_for(open_pet, clock, rows):
    pet, messenger = await open_pet(), Messenger()
    pet.reminders.register("discord:", messenger)
    await pet.people.set_context("timezone", "Asia/Tokyo", user="discord:1")
    await task_for(pet, place=CHANNEL)
    await task_for(pet, "discord:2")
    assert await pet.reminders.run() == 0

    clock.advance(hours=1)

    assert [await pet.reminders.run(), await pet.reminders.run()] == [2, 0]
    text = "⏰ “call the dentist”"  # their own time zone, told in private, counts in a place too
    timed = f"{text} 2026-11-21 19:30 (JST)"
    assert sorted(messenger.sent, key=str) == [("discord:1", CHANNEL, timed), ("discord:2", PRIVATE, text)]
    assert await pet.components.queue.counts() == (0, 0)
    said = rows("SELECT conversation_id, place, role, text FROM messages ORDER BY user_id")
    assert [tuple(row.values()) for row in said] == [
        (CHANNEL.key, CHANNEL.key, "assistant", timed),
        ("dm:discord:2", "", "assistant", text),
    ]
    history = await pet.components.transcript.last("dm:discord:2", Audience.of("discord:2"), 5)
    assert [message.text for message in history] == [text], "so that the answer 'done' is understood"


async def test_the_sender_with_the_longest_prefix_sends_once_there_is_one(open_pet, clock):
    pet, discord, slack, team = await open_pet(), Messenger(), Messenger(), Messenger()
    unregister = pet.reminders.register("discord:", discord)
    await task_for(pet, "slack:T:1")
    clock.advance(minutes=70)
    assert await pet.reminders.run() == 0
    unregister()
    assert await pet.reminders.run() == 0

    pet.reminders.register("slack:", slack)
    pet.reminders.register("slack:T:", team)
    unregister = pet.reminders.register("slack:T:", team)
    assert await pet.reminders.run() == 1
    unregister()
    unregister()

    assert (len(team.sent), len(slack.sent), len(discord.sent)) == (1, 0, 0)


async def test_a_sender_that_hangs_holds_up_no_other(open_pet, clock, monkeypatch):
    monkeypatch.setattr("agent.background.reminders.PATIENCE", 1.0)
    pet, slack, anybody = await open_pet(), Messenger(), Messenger()
    pet.reminders.register("discord:", hangs)
    pet.reminders.register("slack:", slack)
    pet.reminders.register("", anybody)
    for number in range(60):
        await task_for(pet, f"discord:{number}")
    for user in ("slack:1", "ana"):
        await task_for(pet, user)
    clock.advance(hours=1)
    assert await pet.reminders.run() == 2
    await task_for(pet, "slack:2")
    clock.advance(hours=1)
    assert await pet.reminders.run() == 1
    assert [user for user, _, _ in slack.sent] == ["slack:1", "slack:2"]
    assert [user for user, _, _ in anybody.sent] == ["ana"]


async def test_a_sender_ends_with_the_companion(open_pet, clock):
    pet, ended = await open_pet(), list[str]()

    async def hang(*_: object) -> bool:
        try:
            return await asyncio.Event().wait()
        finally:
            ended.append("hang")

    pet.reminders.register("discord:", hang)
    await task_for(pet)
    clock.advance(hours=1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(pet.reminders.run(), 0.1)
    await pet.close()
    assert ended == ["hang"]
