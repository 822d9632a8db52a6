"""Consolidation after a turn: summary, profile, facts and tasks, with at most one model call. The models are
scripted."""

import asyncio
import json
import logging
import re
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest
from agents.exceptions import ModelRefusalError, ModelTimeoutError
from scripted_server import Fail, Say, answer
from sqlalchemy import select, update

from agent.background.consolidation.apply import AnswerWriter
from agent.background.consolidation.reader import NEW_FACTS
from agent.tracing.render.trace import tree
from agent.types.client import AnswerForm, ClientTurn
from hachi import Companion, ModelUnavailable, Settings
from hachi.testing import AnsweringModel, FixedClock
from memory.audience import PRIVATE, Place, user_key
from memory.forgetting.hiding import reword
from memory.sql.messages.summaries import CONSOLIDATE
from memory.sql.tables import work

Rows = Callable[..., list[dict[str, Any]]]


OLD, NEW = "Ana drives a red car", "Ana sold her car"


NOTHING_NEW = {"summary": ""}


def consolidator(*answers: Any, seconds: float = 0.0) -> AnsweringModel:
    """A model that answers as given, then that there is nothing new."""
    return AnsweringModel(*answers, then=NOTHING_NEW, seconds=seconds)


async def talk(pet: Companion, *texts: str, user: str = "ana", settle: bool = True, **where: Any) -> None:
    for text in texts:
        await pet.respond(text, user=user, **where)
        if settle:
            await pet.settle()


def wrote(*contents: str, ttl: str | None = None) -> dict[str, Any]:
    """An answer with these memories."""
    return {"message": "I see.", "memories": [{"content": content, "ttl": ttl} for content in contents]}


def rules(ruling: str, new: str | None, old: str, **found: Any) -> Callable[[str], dict[str, Any]]:
    """What a consolidation finds, with a ruling on the facts with these contents; without one, on its own."""

    def id_of(content: str, asked: str) -> str:
        shown = re.search(rf"\] {re.escape(content)} \([^()]+\) \[(\w+)\]", asked)
        assert shown, f"{content} was not offered"
        return shown[1]

    def answered(asked: str) -> dict[str, Any]:
        named = id_of(new, asked) if new else "#1"
        return NOTHING_NEW | {
            **found,
            "rulings": [{"new": named, "old": id_of(old, asked), "ruling": ruling}],
        }

    return answered


async def summary(pet: Companion, user: str = "ana", place: str | None = None) -> str:
    where = Place.parse(place)
    owner = user_key(user) if where.private else where.key
    talk = f"dm:{user}" if where.private else where.key
    active = await pet.components.summaries.of(talk, owner, pet.clock())
    return active.summary if active else ""


async def test_a_prompt_has_the_previous_summary_and_only_the_newest_messages(open_pet):
    model = consolidator(*({"summary": f"Summary {n}."} for n in range(30)))
    pet = await open_pet(given=AnsweringModel(), consolidating=model)

    await talk(pet, *(f"line number {n}" for n in range(5)))

    last = model.asked[-1]
    assert len(model.asked) == 5
    assert "> Summary 3." in last
    assert "line number 4" in last
    assert "line number 2" not in last
    assert len(last) <= len(model.asked[1]) + 10, "what it costs does not grow"


BREEDS, VET = "Ana breeds alpacas", "Ana's vet is Dr. Amari"


def facts(*texts: str, **found: Any) -> dict[str, Any]:
    """What a consolidation finds: facts, which cite the first message."""
    fact = {"messages": [1], "importance": "high", "tags": ["ana"], "ttl": None, "replaces": None}
    return NOTHING_NEW | {"new_facts": [{"text": text, **fact} for text in texts], **found}


async def test_the_whole_facts_of_a_cut_answer_are_kept_once_and_half_is_asked_about_again(open_pet, rows):
    cut = json.dumps(facts(BREEDS, VET, summary="Ana breeds alpacas."))
    cut = cut[: cut.index("Amari") + 2]
    again = facts(f"{BREEDS}.", VET, summary="Ana breeds alpacas; her vet is Dr. Amari.")
    model = consolidator(cut, again, facts("Ana sings", summary="Ana breeds alpacas and sings."))
    pet = await open_pet(given=AnsweringModel(), consolidating=model)

    await talk(pet, "I breed alpacas, Dr. Amari is my vet", "I sing", settle=False)
    await pet.settle()

    held = sorted(fact.content for fact in await pet.memories.list(user="ana"))
    assert held == [BREEDS, "Ana sings", VET]
    assert ["I sing" in asked for asked in model.asked] == [True, False, True]
    assert f"[FACT] {BREEDS} (" in model.asked[1], "the model is shown what is stored already"
    assert await summary(pet) == "Ana breeds alpacas and sings."
    assert rows("SELECT * FROM work") == []


REFUSAL = ModelRefusalError("I can't help with that.")


@pytest.mark.parametrize("answer", ["{}", REFUSAL, json.dumps(facts("A"))[:-9]])
async def test_what_cannot_be_read_twice_is_tried_again_later_with_less_and_nothing_is_lost(
    open_pet, clock, rows, caplog, answer
):
    model = consolidator(
        {"summary": "Ana rows."}, answer, answer, answer, facts("Ana won", summary="Ana won!")
    )
    pet = await open_pet(given=AnsweringModel(), consolidating=model)
    await talk(pet, "I row")
    with caplog.at_level(logging.INFO, "hachi.consolidation"):
        await talk(pet, "I won!")

    assert await summary(pet) == "Ana rows."
    [job] = rows("SELECT * FROM work")
    assert (job["kind"], job["attempts"]) == (CONSOLIDATE, 1)
    assert "UnreadableAnswer: the model's answer about 2 messages: " in job["last_error"]
    counted = [json.loads(text)["ok"] for text in caplog.messages if "memory_extraction" in text]
    assert counted == [False, False]
    clock.advance(minutes=1)
    await pet.settle()

    assert "Ana won" in [fact.content for fact in await pet.memories.list(user="ana")]
    assert await summary(pet) == "Ana won!"
    assert rows("SELECT * FROM work") == []


async def test_one_message_that_no_answer_can_be_read_about_holds_up_none_before_it(open_pet, clock):
    def answers(asked: str) -> Any:
        return "{}" if "number 5" in asked else {"summary": "Read."}

    model = consolidator(*[answers] * 30)
    pet = await open_pet(given=AnsweringModel(), consolidating=model)
    await talk(pet, *(f"number {n}" for n in range(6)), settle=False)
    for _ in range(4):
        await pet.settle()
        clock.advance(hours=1)

    assert "number 4" not in model.asked[-1]
    assert "number 5" in model.asked[-1]


async def test_an_unreadable_answer_leaves_a_profile_as_it_was(open_pet):
    pet = await open_pet(given=AnsweringModel(), consolidating=consolidator("{}", "{}"))
    await pet.people.set_context("tone", "formal", user="ana")
    before = await pet.people.context(user="ana")

    await talk(pet, "I won the race today.")

    assert await pet.people.context(user="ana") == before


async def test_one_wrong_value_costs_that_value_alone_and_the_trace_says_so(open_pet, caplog):
    found = {
        "summary": "Ana won.",
        "new_facts": [
            {"text": "Ana won the race", "importance": "critical", "tags": []},
            {"text": "Ana has a coach", "importance": "high", "tags": []},
        ],
        "new_preferences": [{"key": "level", "value": "wizard"}, {"key": "role", "value": "nurse"}],
        "task_updates": [
            {"id": None, "description": "Buy running shoes", "status": "finished"},
            {"id": None, "description": "Call the coach", "status": "open"},
        ],
    }
    pet = await open_pet(given=AnsweringModel(), consolidating=consolidator(found))

    with caplog.at_level(logging.INFO, "hachi.consolidation"):
        reply = await pet.respond("I won the race, I'm a nurse. I must call my coach.", user="ana")
        await pet.settle()

    assert await summary(pet) == "Ana won."
    facts = {fact.content: fact.importance for fact in await pet.memories.list(user="ana")}
    assert facts == {"Ana won the race": 0.6, "Ana has a coach": 0.9}
    known = await pet.people.context(user="ana")
    assert (known.profile.level, known.profile.role) == (None, "nurse")
    assert {task.description for task in known.open_tasks} == {"Buy running shoes", "Call the coach"}
    [line] = [json.loads(text) for text in caplog.messages if "memory_extraction" in text]
    assert (line["ok"], line["left_out"]) == (True, ["importance", "new_preferences[0]", "status"])
    [trace] = await pet.traces.after(reply.trace_id, pet.clock())
    shown = str(tree(trace))
    assert "not read: importance: input should be a valid number" in shown
    assert "not read: new_preferences[0]: profile.level is" in shown


async def test_a_hanging_model_does_not_hold_up_other_jobs(open_pet, server):
    model, people = AnsweringModel(then={"summary": ""}, hold=""), [f"user{n}" for n in range(6)]
    pet = await open_pet(openai_base_url=server.url, model="tiny", api="chat", consolidating=model)
    server.script(*(answer("Noted.", {"content": f"{user} is allergic to nuts"}) for user in people))

    for user in people:
        await pet.respond("I am allergic to nuts", user=user)
    async with asyncio.timeout(30):
        for user in people:
            while not await pet.memories.list(user=user):  # noqa: ASYNC110 - another task's doing
                await asyncio.sleep(0.01)
    model.release.set()
    await pet.settle()

    assert len(model.asked) == len(people)


async def test_the_mode_of_a_conversation_steers_the_extraction(open_pet):
    model = consolidator()
    pet = await open_pet(given=AnsweringModel(), consolidating=model, mode="work")

    await talk(pet, "hello there")
    await pet.people.set_context("mode", "study", user="ana")
    await talk(pet, "once again")
    await pet.people.set_context("mode", "", user="ana")
    await talk(pet, "and again")

    assert ["colleague" in asked for asked in model.asked] == [True, False, True]
    assert "tutor" in model.asked[1]


async def test_facts_that_outgrow_the_prompt_are_summarised(open_pet, clock):
    model = consolidator(NOTHING_NEW, NOTHING_NEW | {"memory_summary": "Ana has a trophy for many things."})
    pet = await open_pet(given=AnsweringModel(), consolidating=model, judge=False)
    await talk(pet, "hello there")
    for n in range(NEW_FACTS):  # more than 1,000 characters hold
        await pet.remember(f"Ana's trophy number {n} is a cup", user="ana", importance=0.9)

    await talk(pet, "good morning")
    clock.advance(minutes=1)
    await talk(pet, "nothing new")
    for n in range(NEW_FACTS):
        await pet.remember(f"Ana's boat number {n} is blue", user="ana", importance=0.8)
    await talk(pet, "I am still there")

    assert ["memory_summary" in asked for asked in model.asked] == [False, True, False, True]
    assert (await pet.people.context(user="ana")).memory_summary == "Ana has a trophy for many things."
    boat, *_, trophy = await pet.memories.list(user="ana")
    await pet.memories.forget(boat.id, user="ana")
    assert (await pet.people.context(user="ana")).memory_summary, "it says nothing of boats"
    await pet.memories.forget(trophy.id, user="ana")
    assert (await pet.people.context(user="ana")).memory_summary is None, "it rests on what was deleted"
    await talk(pet, "I am here again")
    assert "memory_summary" not in model.asked[-1], "it is not asked for before as many facts are new"


@pytest.mark.parametrize("in_answer", [True, False])
async def test_a_model_rules_by_default_in_the_call_that_consolidates(open_pet, in_answer):
    found = {} if in_answer else {"new_facts": [{"text": NEW, "importance": "low", "tags": []}]}
    model = consolidator(rules("replaces", NEW if in_answer else None, OLD, **found))
    answering = AnsweringModel(*([wrote(NEW)] if in_answer else []))
    pet = await open_pet(given=answering, consolidating=model)
    await pet.remember(OLD, user="ana")

    await talk(pet, "I have sold my car")

    assert {memory.content for memory in await pet.memories.list(user="ana")} == {NEW}
    assert len(model.asked) == 1, "nobody else is asked"


@pytest.mark.parametrize("sure", [True, False])
@pytest.mark.parametrize("how", ["replaces", "new", "stored"])
async def test_a_replacement_of_something_else_is_asked_again_with_both_texts(open_pet, how, sure):
    allergic, padel = "Ana is allergic to peanuts", "Ana plays padel"
    fact = {"text": padel, "messages": [1], "importance": "high", "tags": ["ana"], "ttl": None}
    model, answering = consolidator(), AnsweringModel(*([wrote(padel)] if how == "stored" else []))
    pet = await open_pet(given=answering, consolidating=model)
    old = (await pet.remember(allergic, user="ana")).id
    found = {
        "replaces": facts(new_facts=[fact | {"replaces": old}]),
        "new": rules("replaces", None, allergic, new_facts=[fact | {"replaces": None}]),
        "stored": rules("replaces", padel, allergic),
    }
    model.answers = [found[how], {"rulings": [{"pair": 1, "action": "replace" if sure else "add"}]}]

    await talk(pet, "I play padel")

    known = {fact.content for fact in await pet.memories.list(user="ana")}
    assert known == ({padel} if sure else {padel, allergic})
    assert [allergic in asked and padel in asked for asked in model.asked[1:]] == [True]


async def test_a_summary_rests_on_what_a_void_ruling_left(open_pet):
    early, late = "Ana's train leaves at 9:15", "Ana's train leaves at 9:45"
    model = consolidator(rules("same", late, early, summary="Ana's train: 9:15, 9:45."))
    pet = await open_pet(given=AnsweringModel(wrote(late)), consolidating=model)
    old = (await pet.remember(early, user="ana")).id

    await talk(pet, "my train leaves at 9:45")

    assert {fact.content for fact in await pet.memories.list(user="ana")} == {early, late}
    assert await summary(pet) == "Ana's train: 9:15, 9:45."
    await pet.memories.forget(old, user="ana")
    assert "9:15" not in await summary(pet)


async def test_a_new_wish_ends_the_note_that_it_contradicts(open_pet):
    first = [{"key": "answer_length", "value": "short"}, {"key": "other_notes", "value": "One sentence each"}]
    second = [
        {"key": "answer_length", "value": "long"},
        {"key": "other_notes", "value": "Explain at length", "replaces": "One sentence each"},
    ]
    model = consolidator(*(NOTHING_NEW | {"new_preferences": wishes} for wishes in (first, second)))
    pet = await open_pet(given=AnsweringModel(), consolidating=model)

    await talk(pet, "Keep it short, one sentence", "Longer answers please, explain at length")

    wishes = (await pet.people.context(user="ana")).preferences
    assert (wishes.answer_length, wishes.other_notes) == ("long", ("Explain at length",))
    there = (await pet.people.context(user="ana", place="acme/general")).preferences
    assert (there.answer_length, there.other_notes) == ("long", ())


async def test_one_model_call_after_a_turn_updates_everything(open_pet, server, rows):
    pet = await open_pet(openai_base_url=server.url, model="big", api="chat", consolidate_model="small")
    server.script(*[answer("Bravo!")] * 4)
    found = {
        "summary": "Ana got the job in Lyon and will move in May.",
        "new_facts": [{"text": "Ana got a job in Lyon", "importance": "high", "tags": ["Ana", "work"]}],
        "new_preferences": [{"key": "language", "value": "French"}, {"key": "role", "value": "nurse"}],
        "task_updates": [
            {"id": None, "description": "Find a flat in Lyon", "status": "open"},
            {"id": "ffffffff", "description": "Nobody's task", "status": "done"},
        ],
    }
    server.script_consolidations(Say(json.dumps(NOTHING_NEW)), Say(json.dumps(found)))

    await pet.respond("I won!", user=None)
    await talk(pet, "hello there")
    stored = [rows(f"SELECT * FROM {table}") for table in ("context_entries", "memories", "work")]
    assert stored == [[], [], []], "nothing was new"
    await talk(pet, "I got the job in Lyon! I'm a nurse. Talk French to me. I must find a flat.", "again?")

    assert [asked.json["model"] for asked in server.asked] == ["big"] * 4, "one is anonymous"
    assert [asked.json["model"] for asked in server.consolidations] == ["small"] * 3
    known = await pet.people.context(user="ana")
    facts = [(fact.content, fact.importance) for fact in known.long_term_facts]
    assert facts == [("Ana got a job in Lyon", 0.9)]
    assert (known.preferences.language, known.profile.role) == ("French", "nurse")
    assert [task.description for task in known.open_tasks] == ["Find a flat in Lyon"]
    assert "## Conversation summary\n> Ana got the job" in server.asked[-1].context
    assert "Answer them in: French" in server.asked[-1].context


async def test_a_server_that_refuses_a_prompt_is_asked_about_half_of_the_messages(open_pet, server, rows):
    pet = await open_pet(openai_base_url=server.url, model="tiny", api="chat", model_retries=0)
    server.script(answer("Oh."), answer("Bravo!"))
    server.script_consolidations(Fail(400), *[Say(json.dumps({"summary": "Ana won."}))] * 2)

    await talk(pet, "Here is a book.", "I won!", settle=False)
    await pet.settle()

    assert ["I won!" in asked.text for asked in server.consolidations] == [True, False, True]
    assert await summary(pet) == "Ana won."
    assert rows("SELECT * FROM work") == []


def numbered(asked: str, text: str) -> int:
    """The number that a prompt gives the message with this text."""
    found = re.search(rf'\((\d+)\) "[^"]*": {re.escape(text)}', asked)
    assert found, f"{text} has no number"
    return int(found[1])


def finds(text: str, *said: str, **fact: Any) -> Callable[[str], dict[str, Any]]:
    """What a consolidation finds: one fact, which cites the messages with these texts."""

    def found(asked: str) -> dict[str, Any]:
        cited = [numbered(asked, one) for one in said]
        return NOTHING_NEW | {
            "new_facts": [{"text": text, "messages": cited, "importance": "high", "tags": []} | fact]
        }

    return found


async def stating(pet: Companion, rows: Rows, user: str = "ana", **where: Any) -> dict[str, list[str]]:
    """The messages that each fact rests on."""
    query = (
        "SELECT text FROM messages JOIN rests_on ON id = source_id WHERE derived_id = ? AND how = 'stated'"
    )
    facts = await pet.memories.list(user=user, **where)
    return {one.content: sorted(row["text"] for row in rows(query, one.id)) for one in facts}


async def test_a_fact_rests_on_the_messages_that_it_cites(open_pet, rows):
    cited = ["I keep ferrets", "two of them"]
    pet = await open_pet(given=AnsweringModel(), consolidating=consolidator(finds("Ana has ferrets", *cited)))

    await talk(pet, "I keep ferrets", "it is raining", "two of them", settle=False)
    await pet.settle()

    assert await stating(pet, rows) == {"Ana has ferrets": cited}


async def test_in_a_place_one_call_reads_all_and_each_item_is_of_who_wrote_what_it_cites(open_pet, rows):
    def found(asked: str) -> dict[str, Any]:
        ana, ben = numbered(asked, "I row"), numbered(asked, "I sing")
        fact = {"importance": "high", "tags": []}
        return {
            "summary": "Ana rows, Ben sings.",
            "new_facts": [
                {"text": "Ana rows", "messages": [ana], **fact},
                {"text": "Ben sings", "messages": [str(ben)], **fact},
                {"text": "Somebody dances", "messages": [], **fact},
            ],
            "new_preferences": [{"key": "role", "value": "singer", "messages": [ben]}],
            "task_updates": [{"id": None, "description": "Book a boat", "status": "open", "messages": [ana]}],
        }

    model, where = consolidator(found), "acme/general"
    pet = await open_pet(given=AnsweringModel(), consolidating=model)
    await talk(pet, "I row", user="ana", place=where, settle=False)
    await talk(pet, "I sing", user="ben", place=where, settle=False)
    await pet.settle()

    assert len(model.asked) == 1
    facts = await pet.memories.list(user="ana", place=where)
    assert {(one.content, one.user_id) for one in facts} == {("Ana rows", "ana"), ("Ben sings", "ben")}
    known = {user: await pet.people.context(user=user, place=where) for user in ("ana", "ben")}
    assert [one.profile.role for one in known.values()] == [None, "singer"]
    assert [[task.description for task in one.open_tasks] for one in known.values()] == [["Book a boat"], []]
    assert await summary(pet, place=where) == "Ana rows, Ben sings."


LEA, ROME = "My sister Lea lives in Rome", "oh cool, Rome is nice"


@pytest.mark.parametrize(
    ("text", "said", "whose"),
    [
        ("Lea lives in Rome", "[]", {"ana"}),
        ("Ana's sister Lea lives in Rome", "I can't say.", {"ana"}),
        ("Ben finds Rome nice", "{}", {"ben"}),
        ("Rome is nice", "", set()),
        ("Rome is nice", {"citations": [{"note": n, "messages": [2]} for n in (1, 3)]}, {"ben"}),
        ("Rome is nice", {"citations": [{"note": f"#{n}", "messages": [1, 2]} for n in (1, 3)]}, set()),
        ("Rome is nice", {"citations": [{"note": n, "messages": [3]} for n in (1, 3)]}, set()),
        ("they talked of a city", "{}", set()),
    ],
)
async def test_what_cites_two_people_is_of_who_says_it_and_of_nobody_where_that_is_unclear(
    open_pet, caplog, text, said, whose
):
    item = {"messages": [1, 2], "importance": "high", "tags": []}
    found = NOTHING_NEW | {
        "new_facts": [
            {"text": text, **item},
            {"text": "Cleo has a cat", "messages": [3], "importance": "high"},
        ],
        "new_preferences": [{"key": "tone", "value": "casual", "messages": [2, 3]}],
        "task_updates": [{"description": text, **item}],
    }
    pet = await open_pet(given=AnsweringModel(), consolidating=(model := consolidator(found, said)))
    where = {"place": "acme/general"}
    for who, words in (("ana", LEA), ("ben", ROME), ("cleo", "My cat likes it casual")):
        await talk(pet, words, user=who, settle=False, **where)
    with caplog.at_level(logging.INFO, "hachi.consolidation"):
        await pet.settle()

    assert len(model.asked) == 2
    assert f'(1) "ana": {LEA}' in model.asked[1]
    facts = {fact.content: {fact.user_id} for fact in await pet.memories.list(user="ana", **where)}
    assert facts == ({text: whose} if whose else {}) | {"Cleo has a cat": {"cleo"}}
    known = {user: await pet.people.context(user=user, **where) for user in ("ana", "ben", "cleo")}
    assert {user for user, one in known.items() if one.open_tasks} == whose
    assert {user for user, one in known.items() if one.preferences.tone} == {"cleo"}
    [line] = [json.loads(told) for told in caplog.messages if "memory_extraction" in told]
    left_out = {"new_facts[0]", "task_updates[0]"} if not whose else set()
    assert {*line["left_out"]} == left_out


async def test_six_messages_are_consolidated_when_they_have_been_quiet(open_pet, clock):
    model = consolidator()
    pet = await open_pet(given=AnsweringModel(), consolidating=model, consolidate_minutes=30)
    for text, minutes in (("I row", 99), ("I sing", 99), ("I swim", 20)):
        await pet.respond(text, user="ana")
        clock.advance(minutes=minutes)
        await pet.settle(hurry=False)
    assert model.asked == []

    clock.advance(minutes=10)
    await pet.settle(hurry=False)

    assert [text in model.asked[0] for text in ("I row", "I sing", "I swim")] == [True] * 3
    assert len(model.asked) == 1


async def test_six_messages_of_a_talk_that_is_never_quiet_are_consolidated_after_a_day(open_pet, clock):
    model = consolidator()
    pet = await open_pet(given=AnsweringModel(), consolidating=model, history_messages=100)
    for n in range(5):
        await pet.respond(f"number {n}", user="ana")
        await pet.settle(hurry=False)
        assert model.asked == []
        clock.advance(hours=5)
    await pet.respond("number 5", user="ana")
    await pet.settle(hurry=False)

    assert len(model.asked) == 1


async def test_fewer_messages_wait_for_a_month_and_only_for_quiet_where_no_answer_notes_facts(
    open_pet, clock
):
    model, form = consolidator(), ClientTurn(form=AnswerForm("note"))
    pet = await open_pet(given=AnsweringModel({"message": "I see."}, {"note": 1}), consolidating=model)
    await pet.respond("I row", user="ana")
    await pet.respond("I sing", user="ben", client=form)
    asked = []
    for hours in (5, 1, 29 * 24, 24):
        clock.advance(hours=hours)
        await pet.settle(hurry=False)
        asked.append(len(model.asked))

    assert asked == [0, 1, 1, 2]
    assert "I sing" in model.asked[0]


async def test_without_a_model_a_quiet_talk_gets_its_summary_however_short(open_pet, clock):
    pet = await open_pet(given=AnsweringModel(), consolidate="plain")
    await pet.respond("I row", user="ana")
    clock.advance(hours=6)
    await pet.settle(hurry=False)

    assert await summary(pet) == "ana: I row"


@pytest.mark.parametrize(
    ("settings", "text", "calls"),
    [({"history_budget": "2000"}, "long " * 150, [0, 1, 1, 2]), ({}, "short", [0, 0, 0, 0, 0, 1])],
)
async def test_what_is_about_to_leave_the_window_is_consolidated_at_once(open_pet, settings, text, calls):
    model, made = consolidator(), list[int]()
    pet = await open_pet(given=AnsweringModel(), consolidating=model, **settings)
    for _ in calls:
        await pet.respond(text, user="ana")
        await pet.settle(hurry=False)
        made.append(len(model.asked))
    assert made == calls


async def test_a_message_that_comes_while_its_conversation_is_consolidated_is_not_passed_over(open_pet):
    model = AnsweringModel(then={"summary": ""}, hold="I row")
    pet = await open_pet(given=AnsweringModel(), consolidating=model)
    await pet.respond("I row", user="ana")
    settling = asyncio.create_task(pet.settle())
    await model.held.wait()
    await pet.respond("I sing", user="ana")
    model.release.set()
    await settling

    await pet.settle()

    assert ["I sing" in asked for asked in model.asked] == [False, True]


async def test_a_question_is_read_with_its_reply_and_without_it_only_where_none_comes(open_pet, clock):
    model, answering = consolidator(), AnsweringModel(hold="I swim")
    pet = await open_pet(given=answering, consolidating=model)
    await pet.respond("I row", user="ana")
    answered = asyncio.create_task(pet.respond("I swim", user="ana"))
    await answering.held.wait()
    await pet.settle()
    answering.release.set()
    await answered
    await pet.settle()
    assert ["I swim" in asked for asked in model.asked] == [False, True]

    answering.answers = [ModelTimeoutError(1.0)]
    with pytest.raises(ModelUnavailable):
        await pet.respond("I climb", user="ana")
    clock.advance(minutes=11)
    await talk(pet, "I ski")
    assert "I climb" in model.asked[-1]


async def test_an_edited_message_is_read_again_where_it_stands_though_it_is_covered(open_pet):
    model = consolidator(*[{"summary": f"Summary {n}."} for n in range(3)], finds("Ana skis", "I ski"))
    pet = await open_pet(given=AnsweringModel(), consolidating=model)
    await talk(pet, "I row", "I sing")
    old = (await pet.conversations.messages(user="ana"))[-1]
    parts = pet.components
    async with parts.database.write() as connection:
        await reword(connection, parts.transcript, old, "I ski", "ana", PRIVATE, pet.clock(), answers=())
    await pet.settle(hurry=False)

    assert [one.content for one in await pet.memories.list(user="ana")] == ["Ana skis"]
    assert ["(1)" in asked for asked in model.asked[2:]] == [False, True]
    said = [one.text for one in await pet.conversations.messages(user="ana") if one.role == "user"]
    assert said == ["I sing", "I ski"]
    assert await summary(pet) == "Summary 2."


async def test_a_fact_that_gives_way_in_a_consolidation_costs_no_second_call(open_pet):
    moved = finds("Ana lives in Porto", "No, Porto")
    model = consolidator({"summary": "Ana lives in Lisbon."})
    pet = await open_pet(given=AnsweringModel(wrote("Ana lives in Lisbon")), consolidating=model)
    await talk(pet, "I live in Lisbon")
    [old] = await pet.memories.list(user="ana")

    def corrected(asked: str) -> dict[str, Any]:
        [fact] = moved(asked)["new_facts"]
        return {"summary": "Ana lives in Porto.", "new_facts": [fact | {"replaces": old.id[:8]}]}

    model.answers = [corrected]
    await talk(pet, "No, Porto")

    assert [memory.content for memory in await pet.memories.list(user="ana")] == ["Ana lives in Porto"]
    assert await summary(pet) == "Ana lives in Porto."
    await pet.settle()
    assert len(model.asked) == 2


async def test_a_crash_before_the_summary_is_written_loses_nothing_and_stores_nothing_twice(
    open_pet, monkeypatch, rows, clock
):
    found = finds("Ana won", "I won!")
    model = consolidator(found, lambda asked: found(asked) | {"summary": "Ana won."})
    pet = await open_pet(given=AnsweringModel(), consolidating=model)

    async def killed(*_: Any, **__: Any) -> None:
        raise RuntimeError("as if the process had ended here")

    with monkeypatch.context() as patch:
        patch.setattr(AnswerWriter, "update_active_summary", killed)
        await talk(pet, "I won!")
    clock.advance(minutes=5)
    await pet.settle()

    assert "[FACT] Ana won (" in model.asked[1], "the model is shown what is stored already"
    assert [memory.content for memory in await pet.memories.list(user="ana")] == ["Ana won"]
    assert await summary(pet) == "Ana won."
    assert rows("SELECT * FROM work") == []


async def test_plain_consolidation_quotes_people(open_pet, server):
    pet = await open_pet(openai_base_url=server.url, model="tiny", api="chat", consolidate="plain")
    server.script(answer("Noted."), answer("Fine."))

    await talk(pet, "We decided to rent the flat in Lyon.", "hello?")

    assert server.consolidations == []
    assert await summary(pet) == "ana: We decided to rent the flat in Lyon.\nana: hello?"


@pytest.mark.parametrize("on_postgresql", [False, True])
async def test_a_process_that_was_stopped_while_it_consolidated_writes_nothing_more(
    tmp_path, clock, light_embedder, postgresql, on_postgresql
):
    """Its clock is behind, too: claims are timed by the database."""
    stopped = AnsweringModel(then=facts("Ana rows", summary="Ana rows."), hold="I row")
    other = AnsweringModel(then=facts("Ana is a rower", summary="Ana is a rower."))
    ahead, url = FixedClock(clock() + timedelta(minutes=2)), await postgresql.new() if on_postgresql else None
    async with AsyncExitStack() as closing:
        pets = []
        for at, model in ((clock, stopped), (ahead, other)):
            settings = Settings.load(home=tmp_path, embedder="bundled", database_url=url)
            opened = Companion.open(
                settings, clock=at, model=AnsweringModel(), consolidation_model=model, periodic_jobs=False
            )
            pets.append(await closing.enter_async_context(opened))
        first, second = pets
        await first.respond("I row", user="ana")
        settling = asyncio.create_task(first.settle())
        await stopped.held.wait()
        await second.settle()
        assert other.asked == [], "the claim holds"
        database = second.components.database
        claimed = update(work).where(work.c.claimed_by.is_not(None))
        await database.run(claimed.values(due_at=clock() - timedelta(days=9)))
        await second.settle()
        assert len(other.asked) == 1
        stopped.release.set()
        await settling

        assert [fact.content for fact in await first.memories.list(user="ana")] == ["Ana is a rower"]
        assert await summary(first) == "Ana is a rower."
        assert await database.rows(select(work)) == []


SECRET, NEWS = "Ana wants nobody to know that she is pregnant", "Ana is pregnant and told everybody"


@pytest.mark.parametrize(
    ("place", "label"), [("acme/general", "acme/general"), ("discord/20/30", "a channel on Discord")]
)
async def test_what_is_told_in_public_later_ends_the_older_secret_in_the_next_private_talk(
    open_pet, clock, place, label
):
    model = consolidator()
    pet = await open_pet(given=AnsweringModel(), consolidating=model)
    await pet.remember(SECRET, user="ana", importance=0.9)
    await talk(pet, "good morning")
    clock.advance(days=1)
    await pet.remember(NEWS, user="ana", place=place, importance=0.9)
    model.answers = [rules("replaces", NEWS, SECRET)]
    await talk(pet, "The weather is fine")

    assert f"[FACT] {NEWS} ({label}, " in model.asked[-1]
    assert [fact.content for fact in await pet.memories.list(user="ana")] == [NEWS]


@pytest.mark.parametrize("settled", [False, True])
async def test_a_fact_that_rests_on_what_somebody_else_arranges_is_shown_when_that_changes(
    open_pet, clock, settled
):
    party, moved = "Ana goes to Ben's garden party", "Ben's garden party is put off to 19 June"
    model, where = consolidator(), {"place": "acme/general"}
    answering = AnsweringModel(wrote(moved))
    pet = await open_pet(given=answering, consolidating=model)
    await pet.remember(party, user="ana", **where)
    for n in range(30):
        await pet.remember(f"Ana's weather station number {n} measures rain", user="ana", **where)
    clock.advance(minutes=1)
    await talk(pet, "My garden party is put off to 19 June", user="ben", settle=settled, **where)
    clock.advance(minutes=1)
    await talk(pet, "Rain again", user="ana", settle=False, **where)
    await pet.settle()

    def near() -> str:
        return model.asked[-1].partition("near what was said:")[2].partition("## What was said")[0]

    assert f"[FACT] {party} (ana, " in near()
    if settled:
        assert f"[FACT] {moved} (ben, " in near()
        clock.advance(minutes=1)
        await talk(pet, "The weather is fine", user="ana", **where)
        assert moved not in near(), "they were offered"
