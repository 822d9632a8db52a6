"""What people want to be reminded of."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sqlalchemy import event, insert, update

from memory.errors import NotFound
from memory.people.task_wording import same_words
from memory.people.tasks import MOST_READ, Tasks, Unclear
from memory.records import Task
from memory.sql.tables import tasks

if TYPE_CHECKING:
    from tests.memory.conftest import Stack

ACME = "place:acme"


async def put(stack: Stack, description: str, status: Any = "open", user: str = "anna", **given: Any) -> Task:
    return await stack.tasks.put(user, description, status, now=stack.clock.now, **given)


async def descriptions(stack: Stack, **which: Any) -> set[str]:
    return {task.description for task in await stack.tasks.list("anna", **which)}


async def test_a_task_is_kept_as_it_was_given(stack: Stack) -> None:
    due = datetime(2026, 12, 1, 9, tzinfo=UTC)
    task = await put(stack, "  call the dentist ", due=due)
    assert await stack.tasks.list("anna") == [task]
    assert task == Task(task.id, "anna", "call the dentist", "open", stack.clock.now, stack.clock.now, due)


async def test_a_task_is_its_users_alone(stack: Stack) -> None:
    task = await put(stack, "call the dentist")
    assert await stack.tasks.list("ben") == []
    with pytest.raises(NotFound, match="give null to make a new one"):
        await put(stack, "", "done", user="ben", id=task.id)
    assert await stack.tasks.list("anna") == [task]


@pytest.mark.parametrize("length", [36, 8, 4])
async def test_a_task_is_changed_by_its_id_or_the_beginning_of_it(stack: Stack, length: int) -> None:
    task = await put(stack, "call the dentist")
    stack.clock.move(hours=1)
    due = datetime(2026, 12, 1, 9, tzinfo=UTC)
    await put(stack, "", "in_progress", id=task.id[:length], due=due)
    [changed] = await stack.tasks.list("anna")
    assert (changed.id, changed.description, changed.status, changed.due) == (
        task.id,
        "call the dentist",
        "in_progress",
        due,
    )
    assert changed.created_at == task.created_at
    assert changed.last_updated == stack.clock.now


@pytest.mark.parametrize("id", ["abc", "%%%%", "____", "no such task", ""])
async def test_an_id_that_names_no_task_changes_none(stack: Stack, id: str) -> None:
    task = await put(stack, "call the dentist")
    with pytest.raises(NotFound):
        await put(stack, "", "done", id=id)
    assert await stack.tasks.list("anna") == [task]


async def test_a_change_without_a_due_time_leaves_the_one_there_was(stack: Stack) -> None:
    due = datetime(2026, 12, 1, 9, tzinfo=UTC)
    task = await put(stack, "call the dentist", due=due)
    assert (await put(stack, "call Dr. Katz", id=task.id)).due == due
    [changed] = await stack.tasks.list("anna")
    assert changed.description == "call Dr. Katz"


@pytest.mark.parametrize(
    ("first", "again"), [("Call the dentist", " call the DENTIST"), ("Être à l'heure", "être à l'heure")]
)
async def test_saying_it_twice_makes_one_task(stack: Stack, first: str, again: str) -> None:
    one = await put(stack, first)
    assert (await put(stack, again)).id == one.id
    assert len(await stack.tasks.list("anna")) == 1


async def test_what_is_done_can_be_asked_for_anew(stack: Stack) -> None:
    done = await put(stack, "water the plants")
    await put(stack, "", "done", id=done.id)
    assert await stack.tasks.list("anna") == []
    stack.clock.move(days=1)
    anew = await put(stack, "water the plants")
    assert anew.id != done.id
    assert [task.id for task in await stack.tasks.list("anna", done=True)] == [anew.id, done.id]


async def test_what_was_asked_for_in_private_does_not_show_in_a_place(stack: Stack) -> None:
    private = await put(stack, "call the dentist")
    asked_there = await put(stack, "call the dentist", place=ACME)
    assert asked_there.id != private.id
    assert [task.id for task in await stack.tasks.list("anna", place=ACME)] == [asked_there.id]
    assert await stack.tasks.list("anna", place="place:other") == []
    assert {task.id for task in await stack.tasks.list("anna")} == {private.id, asked_there.id}


async def test_a_place_changes_only_what_was_asked_for_there_and_private_anything(stack: Stack) -> None:
    private = await put(stack, "call the dentist")
    asked_there = await put(stack, "bring the cake", place=ACME)
    with pytest.raises(NotFound):
        await put(stack, "", "done", id=private.id, place=ACME)
    await put(stack, "", "done", id=asked_there.id)
    assert await stack.tasks.list("anna") == [private]


async def test_what_a_database_cannot_hold_is_left_out(stack: Stack) -> None:
    assert (await put(stack, "call\x00 Ben \ud800")).description == "call Ben \ufffd"


async def test_a_time_needs_a_zone(stack: Stack) -> None:
    naive = datetime(2026, 12, 1, 9)  # noqa: DTZ001
    with pytest.raises(ValueError, match="aware UTC"):
        await put(stack, "call Ben", due=naive)
    with pytest.raises(ValueError, match="aware UTC"):
        await stack.tasks.put("anna", "call Ben", now=naive)
    assert await stack.tasks.list("anna") == []


async def test_a_task_needs_an_id_or_a_description(stack: Stack) -> None:
    await put(stack, "call Ben")
    with pytest.raises(NotFound, match="give its id, or a description"):
        await put(stack, "  ", "done")


# Which task is meant by an id.


@pytest.mark.parametrize("length", [36, 8])
async def test_an_id_may_be_typed_in_capitals(stack: Stack, length: int) -> None:
    task = await put(stack, "call Ben")
    assert (await put(stack, "", "done", id=f" {task.id[:length].upper()} ")).status == "done"


async def test_the_beginning_of_two_ids_means_neither(stack: Stack) -> None:
    first, second = await put(stack, "call Ben"), await put(stack, "buy tea")
    async with stack.database.write() as connection:
        for task, end in ((first, "1"), (second, "2")):
            new = f"abcdef12-0000-4000-8000-00000000000{end}"
            await connection.execute(update(tasks).where(tasks.c.id == task.id).values(id=new))
    with pytest.raises(Unclear, match="begins the ids of several tasks") as error:
        await put(stack, "", "done", id="abcdef12")
    told = str(error.value)
    assert "[task abcdef12-0000-4000-8000-000000000001] call Ben" in told
    assert "[task abcdef12-0000-4000-8000-000000000002] buy tea" in told
    assert await descriptions(stack) == {"call Ben", "buy tea"}


async def test_by_its_id_a_task_is_worded_anew_and_opened_again(stack: Stack) -> None:
    task = await put(stack, "call Ben at noon")
    await put(stack, "", "done", id=task.id)
    again = await put(stack, "call Ben", "open", id=task.id)
    assert (again.description, again.status) == ("call Ben", "open")


async def test_by_its_id_only_what_is_given_changes(stack: Stack) -> None:
    due = datetime(2026, 12, 1, 9, tzinfo=UTC)
    task = await put(stack, "call Ben", "in_progress", due=due)
    stack.clock.move(hours=1)
    assert await put(stack, "", None, id=task.id) == task
    changed = await put(stack, "call Ben and Zoe", None, id=task.id)
    assert (changed.status, changed.due, changed.last_updated) == ("in_progress", due, stack.clock.now)


# When it is due.


async def test_a_due_time_is_replaced_kept_and_taken_away(stack: Stack) -> None:
    first, later = datetime(2026, 12, 1, 9, tzinfo=UTC), datetime(2026, 12, 2, 9, tzinfo=UTC)
    task = await put(stack, "call Ben", due=first)
    assert (await put(stack, "call Ben", due=later)).due == later
    assert (await put(stack, "", id=task.id)).due == later
    assert (await put(stack, "", id=task.id, due="never")).due is None
    assert (await put(stack, "buy tea", due="never")).due is None


async def test_a_due_time_is_kept_in_utc(stack: Stack) -> None:
    told = datetime(2026, 12, 1, 9, tzinfo=ZoneInfo("Europe/Paris"))
    made = await put(stack, "call Ben", due=told)
    assert made.due == told
    assert made.due.utcoffset() == timedelta(0)
    assert await stack.tasks.list("anna") == [made]


# Which task is meant by its words.

SAME = [
    ("call the dentist", "Call dentist!"),
    ("call the dentist", "to call the dentist"),
    ("call the dentist", "CALL THE DENTIST"),
    ("call the dentist", "dentist: call"),
    ("call mum", "Don’t forget to call mum"),
    ("call mum on Monday", "on Monday, call mum"),
    ("check e-mails", "check E mails"),
    ("appeler le dentiste", "Rappelle-moi d’appeler le dentiste."),
    ("réserver l'hôtel à Rome", "reserver hotel à Rome"),
    ("להתקשר לרופא", "תזכיר לי להתקשר לרופא!"),
    ("ΠΑΡΕ ΓΑΛΑ", "πάρε γάλα"),
    ("позвонить маме", "Позвонить маме."),
    ("给妈妈打电话", "给妈妈打电话。"),
    ("🎉", "🎉"),
    ("the", "The"),
]
APART = [
    ("call mum on Monday", "call mum on Tuesday"),
    ("buy 2 eggs", "buy 3 eggs"),
    ("buy 1.5 kg", "buy 5.1 kg"),
    ("set the heating to 5", "set the heating to -5"),
    ("pay 5€", "pay 5$"),
    ("learn C", "learn C++"),
    ("call Anna", "call Ben"),
    ("call Martin", "call Martina"),
    ("call Anna", "call Anna's mother"),
    ("call her", "call him"),
    ("call Anna about Ben", "call Ben about Anna"),
    ("call anna about ben", "call ben about anna"),
    ("llamar a Ana sobre Ben", "llamar a Ben sobre Ana"),
    ("turn the heating on", "turn the heating off"),
    ("turn on the heating", "turn off the heating"),
    ("call mum", "don't call mum"),
    ("call mum", "call mum again"),
    ("buy milk", "sell milk"),
    ("read chapter one", "read chapter two"),
    ("acheter du thé", "acheter du lait"),
    ("acheter du thé", "acheter the"),
    ("appeler Anna", "appeler la mère d'Anna"),
    ("לקנות חלב", "לקנות לחם"),
    ("かぎを買う", "かきを買う"),
    ("给妈妈打电话", "给爸爸打电话"),
    ("buy 🍎", "buy 🍌"),
    ("!!!", "???"),
    ("buy two eggs", "buy 2 eggs"),
    ("buy milk and eggs", "buy eggs and milk"),
    ("log in to the bank", "log on to the bank"),
]
MORE = [
    ("call mum", "call mum on Monday"),
    ("buy milk", "buy milk and eggs"),
    ("call the dentist", "call the dentist on Monday at 9"),
    ("appeler maman", "appeler maman avec Léo"),
    ("להתקשר לאמא", "להתקשר לאמא עם דנה"),
]


@pytest.mark.parametrize(("first", "again"), SAME)
async def test_the_same_words_mean_the_same_task(stack: Stack, first: str, again: str) -> None:
    task = await put(stack, first)
    assert await put(stack, again) == task, "its description stays"


@pytest.mark.parametrize(("one", "other"), APART)
async def test_what_tells_two_tasks_apart_makes_two(stack: Stack, one: str, other: str) -> None:
    first = await stack.tasks.update("anna", one, now=stack.clock.now)
    second = await stack.tasks.update("anna", other, now=stack.clock.now)
    assert (first.action, second.action) == ("made", "made")
    assert await descriptions(stack) == {one, other}


@pytest.mark.parametrize(("little", "more"), MORE)
async def test_what_says_more_is_kept_whichever_comes_first(stack: Stack, little: str, more: str) -> None:
    task = await put(stack, little)
    assert [(t.id, t.description) for t in [await put(stack, more)]] == [(task.id, more)]
    assert (await put(stack, little)).description == more
    assert await descriptions(stack) == {more}


async def test_where_two_say_more_a_third_is_made(stack: Stack) -> None:
    await put(stack, "call mum on Monday")
    await put(stack, "call mum on Tuesday")
    made = await stack.tasks.update("anna", "call mum", now=stack.clock.now)
    assert made.action == "made"
    assert {task.description for task in made.close} == {"call mum on Monday", "call mum on Tuesday"}


async def test_a_new_task_comes_with_those_it_resembles(stack: Stack) -> None:
    one = await put(stack, "call the dentist")
    await put(stack, "buy tea")
    made = await stack.tasks.update("anna", "call the dentits", now=stack.clock.now)
    assert (made.action, made.close) == ("made", (one,))


async def test_where_only_the_same_words_are_to_count_more_of_them_make_another(stack: Stack) -> None:
    task = await put(stack, "call mum")
    other = await stack.tasks.update("anna", "call mum on Monday", now=stack.clock.now, alike=False)
    same = await stack.tasks.update("anna", "Call mum!", now=stack.clock.now, alike=False)
    assert (other.action, same.task.id) == ("made", task.id)


async def test_naming_a_task_that_was_begun_does_not_take_it_back(stack: Stack) -> None:
    await put(stack, "write the report", "in_progress")
    assert (await put(stack, "write the report", "open")).status == "in_progress"


async def test_what_changes_nothing_writes_nothing(stack: Stack) -> None:
    task = await put(stack, "call Ben")
    stack.clock.move(hours=1)
    change = await stack.tasks.update("anna", "call Ben", "open", now=stack.clock.now)
    assert (change.task, change.action) == (task, "unchanged")
    assert await stack.tasks.list("anna") == [task]


async def test_turns_at_the_same_time_make_one_task(stack: Stack) -> None:
    await asyncio.gather(*(put(stack, words) for words in ("call Ben", "Call Ben!", "to call Ben")))
    assert len(await stack.tasks.list("anna")) == 1


# Finishing by words.


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("call the dentist", "dentist"),
        ("call the dentist", "I finally called the dentist today"),
        ("call the dentist", "calling the dentist"),
        ("call mum", "call mum on Monday"),
        ("plan the trip", "planned the trip"),
        ("go to the bank", "bank"),
        ("appeler maman", "j’ai appelé maman"),
        ("acheter du pain", "pain acheté"),
        ("להתקשר לרופא", "הרופא"),
        ("购买牛奶", "牛奶"),
        ("치과에 전화하기", "치과"),
        ("done with it", "done"),
    ],
)
async def test_finishing_takes_the_only_task_that_can_be_meant(stack: Stack, task: str, said: str) -> None:
    one = await put(stack, task)
    await put(stack, "water 3 plants")
    done = await put(stack, said, "done")
    assert (done.id, done.description, done.status) == (one.id, task, "done")
    assert await descriptions(stack) == {"water 3 plants"}


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("buy 2 eggs", "buy 3 eggs"),
        ("call Martin", "called Martina"),
        ("call Anna's mother", "called Anna"),
        ("call Anna about Ben", "called Ben about Anna"),
        ("don't call Ben", "called Ben"),
        ("buy milk", "bought milk"),
        ("购买牛奶", "奶茶"),
        ("call the dentist", "swimming"),
    ],
)
async def test_finishing_what_is_not_surely_a_task_changes_nothing(
    stack: Stack, task: str, said: str
) -> None:
    one = await put(stack, task)
    with pytest.raises(Unclear, match="nothing was changed") as error:
        await put(stack, said, "done")
    assert error.value.candidates == (one,)
    assert f"[task {one.id[:8]}] {task}" in str(error.value)
    assert await stack.tasks.list("anna", done=True) == [one]


@pytest.mark.parametrize("status", ["done", "in_progress"])
async def test_where_two_tasks_can_be_meant_none_is_changed(stack: Stack, status: Any) -> None:
    two = {await put(stack, "call the dentist"), await put(stack, "ask the dentist for a paper")}
    await put(stack, "call Ben")
    with pytest.raises(Unclear, match="can mean several open tasks") as error:
        await put(stack, "dentist", status)
    assert set(error.value.candidates) == two
    assert {task.status for task in await stack.tasks.list("anna")} == {"open"}


async def test_of_two_tasks_the_one_of_these_words_alone_is_meant(stack: Stack) -> None:
    await put(stack, "call the dentist about the crown")
    plain = await stack.tasks.update("anna", "call the dentist", now=stack.clock.now, alike=False)
    assert (await put(stack, "called the dentist", "done")).id == plain.task.id


async def test_only_the_first_few_candidates_are_named(stack: Stack) -> None:
    for number in range(8):
        await put(stack, f"read chapter {number}")
    with pytest.raises(Unclear, match=r"; and 3 more$") as error:
        await put(stack, "chapter", "done")
    assert len(error.value.candidates) == 5


async def test_candidates_are_named_in_one_line_that_drives_no_terminal(stack: Stack) -> None:
    await put(stack, "call\n\x1b[2JBen " + "now " * 100)
    with pytest.raises(Unclear) as error:
        await put(stack, "swim", "done")
    assert "call [2JBen now" in str(error.value)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 300


async def test_finishing_where_nothing_is_open_makes_no_task(stack: Stack) -> None:
    with pytest.raises(NotFound, match="no task is open") as error:
        await put(stack, "tax return", "done")
    assert not isinstance(error.value, Unclear)
    assert await stack.tasks.list("anna", done=True) == []


async def test_finishing_twice_is_finishing_once(stack: Stack) -> None:
    await put(stack, "call Ben")
    await put(stack, "buy tea")
    done = await put(stack, "call Ben", "done")
    stack.clock.move(hours=1)
    await put(stack, "buy milk")
    await put(stack, "buy milk", "done")
    again = await stack.tasks.update("anna", "Call Ben!", "done", now=stack.clock.now, due="never")
    assert (again.task, again.action) == (done, "unchanged")


async def test_what_is_begun_is_the_task_it_can_mean_or_a_new_one(stack: Stack) -> None:
    task = await put(stack, "do the tax return")
    assert (await put(stack, "tax return", "in_progress")).id == task.id
    assert (await put(stack, "paint the door", "in_progress")).status == "in_progress"
    assert await descriptions(stack) == {"do the tax return", "paint the door"}


async def test_in_a_place_words_mean_only_what_was_asked_for_there(stack: Stack) -> None:
    private = await put(stack, "call the dentist")
    with pytest.raises(NotFound) as error:
        await put(stack, "dentist", "done", place=ACME)
    assert "dentist'" in str(error.value)
    assert private.id[:8] not in str(error.value)
    there = await put(stack, "call the dentist", place=ACME)
    assert (await put(stack, "call the dentist", "done")).id == private.id, "in private, rather the own one"
    assert (await put(stack, "dentist", "done")).id == there.id


@pytest.mark.parametrize("status", ["open", "in_progress"])
async def test_what_is_said_in_private_does_not_become_the_words_of_a_task_in_a_place(
    stack: Stack, status: Any
) -> None:
    there = await put(stack, "call the doctor", place=ACME)
    await put(stack, "call the doctor about the rash", status)
    assert [(task.id, task.description) for task in await stack.tasks.list("anna", place=ACME)] == [
        (there.id, "call the doctor")
    ]


# Properties of the words.

plain_words = st.lists(
    st.text("bcdfghjkßжзйβδθबगدج", min_size=3, max_size=7) | st.integers(2, 99).map(str),
    min_size=1,
    max_size=6,
)


@given(plain_words, st.integers(0, 5))
def test_case_punctuation_articles_and_an_end_put_first_never_matter(words: list[str], at: int) -> None:
    sentence = " ".join(words)
    for other in (
        " ".join([*words[at:], *words[:at]]),
        sentence.upper(),
        sentence.title(),
        f"to {sentence}!",
        ", ".join(words),
        "the " + " the ".join(words),
    ):
        assert same_words(sentence, other)
        assert same_words(other, sentence)


@given(plain_words, plain_words)
def test_other_words_are_never_the_same(one: list[str], other: list[str]) -> None:
    assume(sorted(one) != sorted(other))
    assert not same_words(" ".join(one), " ".join(other))


@given(st.text(), st.text())
def test_any_text_can_be_compared(one: str, other: str) -> None:
    assert same_words(one, one)
    assert same_words(one, other) == same_words(other, one)


# What bears on a turn.


async def test_what_is_overdue_or_due_soon_comes_first_then_what_is_talked_about_then_the_newest(
    stack: Stack,
) -> None:
    now = stack.clock.now
    due = {"water the plants": 47, "feed the cat": -3, "pay the rent": 49, "call the dentist": None}
    for description, hours in due.items():
        stack.clock.move(minutes=1)
        await put(stack, description, due=now + timedelta(hours=hours) if hours else None)
    found = await stack.tasks.relevant("anna", "when do I pay my rents?", now=now, limit=10)
    assert [task.description for task in found] == [
        "feed the cat",
        "water the plants",
        "pay the rent",
        "call the dentist",
    ]
    assert await stack.tasks.relevant("anna", "", now=now, limit=2) == found[:2]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("did I call the dentist?", "call the dentist"),
        ("Was ist mit dem ZAHNARZT?", "Zahnarzt anrufen"),
        ("j'ai appelé maman", "appeler maman"),
        ("מה עם הרופא?", "להתקשר לרופא"),
        ("我买了牛奶吗", "购买牛奶"),
        ("hello there", "newest of all"),
    ],
)
async def test_a_question_brings_the_task_it_shares_words_with(
    stack: Stack, question: str, first: str
) -> None:
    for description in (
        "call the dentist",
        "Zahnarzt anrufen",
        "appeler maman",
        "להתקשר לרופא",
        "购买牛奶",
        "newest of all",
    ):
        stack.clock.move(minutes=1)
        await put(stack, description)
    found = await stack.tasks.relevant("anna", question, now=stack.clock.now)
    assert found[0].description == first


async def test_finished_tasks_and_those_of_others_and_other_places_do_not_bear_on_a_turn(
    stack: Stack,
) -> None:
    now = stack.clock.now
    mine = await put(stack, "call Ben")
    await put(stack, "buy tea")
    await put(stack, "buy tea", "done")
    await put(stack, "call Zoe", user="zoe")
    there = await put(stack, "bring the cake", place=ACME)
    assert set(await stack.tasks.relevant("anna", "tea", now=now)) == {mine, there}
    assert set(await stack.tasks.relevant("anna", "tea", place="", now=now)) == {mine, there}
    assert await stack.tasks.relevant("anna", "tea", place=ACME, now=now) == [there]
    assert await stack.tasks.relevant("anna", "tea", place="place:other", now=now) == []


async def test_a_turn_reads_a_bounded_number_of_tasks_in_one_query(stack: Stack) -> None:
    now = stack.clock.now
    rows = [
        {
            "id": f"{number:08d}",
            "user_id": "anna",
            "place": "",
            "description": f"read page {number}",
            "status": "open",
            "due": now if number == 0 else None,
            "created_at": now + timedelta(seconds=number),
            "last_updated": now,
        }
        for number in range(MOST_READ + 50)
    ]
    async with stack.database.write() as connection:
        await connection.execute(insert(tasks), rows)
    asked: list[str] = []
    engine = stack.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    found = await stack.tasks.relevant("anna", "page 7", now=now, limit=1_000)
    assert len([statement for statement in asked if "FROM tasks" in statement]) == 1
    assert len(found) == MOST_READ
    assert [task.description for task in found[:2]] == ["read page 0", f"read page {MOST_READ + 49}"]


async def test_the_same_question_always_brings_the_same_tasks(stack: Stack) -> None:
    for number in range(20):
        await put(stack, f"read page {number}")
    once = await stack.tasks.relevant("anna", "which page?", now=stack.clock.now, limit=5)
    assert await Tasks(stack.database).relevant("anna", "which page?", now=stack.clock.now, limit=5) == once
