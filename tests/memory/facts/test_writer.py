"""What becomes of a new statement, told as stories."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from memory.audience import Audience
from memory.errors import StoreUnavailable
from memory.facts.candidate import CandidateFact, Provenance
from memory.facts.similar import Doubt, SimilarSearch
from memory.records import MAX_CONTENT, Decision, Hit, Memory, NewMemory
from memory.sql.engine.errors import Overtaken
from memory.sql.tables import memories
from tests.memory.conftest import Stack, on_both

SHOULDER = "Mickael broke his shoulder"
SHOULDER_ON = "Mickael broke his shoulder on 10 January 2026"
ALIAS, ROWS = "Mickael is also called dev", "dev rows every morning"
PARIS, LYON = "Mickael lives in Paris", "Mickael lives in Lyon"


async def rows(stack: Stack) -> int:
    async with stack.database.read() as connection:
        return (await connection.execute(sa.select(sa.func.count()).select_from(memories))).scalar_one()


def hit(memory: Memory) -> Hit:
    return Hit(memory.id, "memory", memory.content, 1.0, memory.created_at, memory=memory)


@on_both
async def test_a_fact_is_kept_with_all_that_was_said_of_it(stack: Stack) -> None:
    fields: dict[str, Any] = {"subjects": ("mickael", "health"), "type": "insight", "importance": 0.9}
    fields |= {"message_id": str(uuid4()), "source": "note"}
    decision = await stack.remember(SHOULDER, "mickael", "acme/general", ttl="30d", **fields)
    memory, until = await stack.the_memory("mickael"), stack.clock.now + timedelta(days=30)
    assert decision == Decision(SHOULDER, "add", memory.id, "new", expires_at=until)
    fields |= {"created_at": stack.clock.now, "expires_at": until, "last_accessed_at": None, "uses": 0}
    fields |= {"user_id": "mickael", "place": "acme/general"}
    owners = frozenset({"user:mickael", "place:acme/general"})
    assert memory == Memory(id=memory.id, content=SHOULDER, owners=owners, **fields)


@on_both
async def test_what_says_more_stands_beside_what_says_less_until_it_is_named(stack: Stack) -> None:
    first = await stack.remember(SHOULDER, "mickael", subjects=("mickael", "health"))
    stack.clock.advance(days=1)
    beside = await stack.remember(SHOULDER_ON, "mickael", subjects=("injury", "mickael"))
    assert (beside.action, [memory.id for memory in beside.close]) == ("add", [first.id])
    assert await stack.known("mickael") == {SHOULDER, SHOULDER_ON}
    assert (await stack.remember(SHOULDER, "mickael")).reason == "known word for word"
    second = await stack.remember(SHOULDER_ON, "mickael", replaces=first.id)
    assert (second.action, second.id, second.target_id) == ("replace", beside.id, first.id)
    assert await stack.known("mickael") == {SHOULDER_ON}
    assert second.id
    [step] = await stack.history.of(second.id, Audience.of("mickael"))
    assert (step.old_content, step.new_content) == (SHOULDER, SHOULDER_ON)
    assert (step.user_id, step.created_at) == ("mickael", stack.clock.now)
    assert step.reason == second.reason == "corrected on purpose"


async def test_saying_it_again_keeps_the_highest_importance_and_the_longest_time(stack: Stack) -> None:
    for importance, ttl in ((0.4, "7d"), (0.8, "30d"), (0.5, "1d")):
        decision = await stack.remember("Anna is ill", importance=importance, ttl=ttl)
    first, until = await stack.the_memory(), stack.clock.now + timedelta(days=30)
    assert (first.importance, first.expires_at, decision.expires_at) == (0.8, until, until)
    stack.clock.advance(days=30)  # it is not purged yet
    second = await stack.remember("Anna is ill", ttl="7d")
    assert (second.action, second.id != first.id) == ("add", True)
    assert (await stack.the_memory()).expires_at == stack.clock.now + timedelta(days=7)
    assert await stack.found("Is Anna ill?") == {"Anna is ill"}


async def test_a_correction_may_change_something_else_than_the_words(stack: Stack) -> None:
    first = await stack.remember("Anna is ill", importance=0.9)
    second = await stack.remember("Anna is ill", importance=0.4, ttl="7d", replaces=first.id)
    assert (second.action, second.target_id) == ("replace", first.id)
    memory = await stack.the_memory()
    assert (memory.importance, memory.expires_at) == (0.4, stack.clock.now + timedelta(days=7))
    alike = {"importance": 0.4, "ttl": "7d", "replaces": memory.id}
    third = await stack.remember("Anna is ill", said_at=stack.clock.now, **alike)
    assert (third.action, third.id) == ("ignore", memory.id)


@on_both
async def test_a_correction_to_what_is_known_already_takes_the_wrong_one_away(stack: Stack) -> None:
    right = await stack.remember("Anna walks her dog every morning")
    wrong = await stack.remember("Anna has a cat called Minka")
    decision = await stack.remember("Anna walks her dog every morning", replaces=wrong.id)
    assert (decision.action, decision.id, decision.target_id) == ("replace", right.id, wrong.id)
    assert await stack.known() == {"Anna walks her dog every morning"}


@on_both
@pytest.mark.parametrize(
    ("wrong", "right"),
    [("The code is Hunter2", "The code is hunter2"), ("Anna said no", "Anna said no!"), ("ΑΝΝΑ", "Αννα")],
)
async def test_a_correction_is_done_if_it_changes_a_capital_or_a_mark(
    stack: Stack, wrong: str, right: str
) -> None:
    old = await stack.remember(wrong)
    new = await stack.remember(right, replaces=old.id)
    assert (new.action, new.target_id) == ("replace", old.id)
    assert [memory.content for memory in await stack.memories()] == [right]
    again = await stack.remember(right, replaces=new.id)
    assert (again.action, again.id) == ("ignore", new.id)


ALLERGIC, PADEL = "Anna is allergic to peanuts", "Anna plays padel"


@on_both
async def test_a_model_replaces_only_what_has_something_in_common_or_was_confirmed(stack: Stack) -> None:
    old = str((await stack.remember(ALLERGIC, subjects=("anna",))).id)
    fields: dict[str, Any] = {"subjects": ("anna",), "replaces": old, "live": True}
    fields["message_id"] = await stack.receive("I play padel")
    beside = await stack.remember(PADEL, **fields)
    assert (beside.action, await stack.known()) == ("add", {ALLERGIC, PADEL})
    fields["message_id"] = await stack.receive("and I play it since I am not allergic any more")
    await stack.remember(f"{PADEL} again", confirmed=frozenset({old}), **fields)
    assert await stack.known() == {PADEL, f"{PADEL} again"}
    assert await stack.reasons(old) == ["corrected by the model"]


@pytest.mark.parametrize(
    ("new", "tags", "related"),
    [
        ("Anna may eat peanuts", (), True),
        ("Anna moved to Lyon", (), False),
        ("Anna moved to Lyon", ("anna",), False),
        ("Anna moved to Lyon", ("anna", "health"), True),
        ("Anna plays with Bello", (), False),
    ],
)
async def test_two_facts_are_related_by_a_tag_a_name_or_their_meaning(
    stack: Stack, new: str, tags: tuple[str, ...], related: bool
) -> None:
    await stack.receive("hello", "u1", author="Anna")
    old = await stack.remember(ALLERGIC, "u1", subjects=("anna", "health"))
    [memory] = await stack.memories("u1")
    assert memory.id == old.id
    assert await stack.similar.related(NewMemory(new, tags), memory, "u1") is related


async def test_a_name_noted_by_another_process_relates_no_facts(stack: Stack, another: Stack) -> None:
    await stack.remember("Robin sails a boat")
    about_robin = NewMemory("Robin pays taxes quarterly"), await stack.the_memory(), "anna"
    assert await stack.similar.related(*about_robin)
    await another.receive("hello", author="Robin")
    assert not await stack.similar.related(*about_robin)


async def test_only_what_the_people_present_may_read_can_be_corrected(stack: Stack) -> None:
    bens = await stack.remember("Ben's PIN is 1234", "ben")
    private = await stack.remember("Anna's PIN is 1234", "anna")
    annas = {"Anna's PIN is 1234"}
    for number, target in enumerate((bens.id, private.id, str(uuid4()))):
        fact = f"Anna has a cat called Minka {number}"
        decision = await stack.remember(fact, "anna", "acme", replaces=target)
        assert (decision.action, decision.target_id) == ("add", None)
        annas.add(fact)
    assert (await stack.known("anna"), await stack.known("ben")) == (annas, {"Ben's PIN is 1234"})


@pytest.mark.parametrize(
    ("content", "fields", "reason"),
    [
        ("", {}, "there is nothing in it"),
        (" \n\x00\u200b ", {}, "there is nothing in it"),
        ("x" * (MAX_CONTENT + 1), {}, "longer than 2,000 characters; say it as single facts"),
        ("Anna said hello", {"importance": 0.29}, "importance 0.29 is under 0.3"),
        (
            "Anna is ill",
            {"ttl": "7d", "said_at": datetime(2026, 11, 1, tzinfo=UTC)},
            "it had already expired",
        ),
    ],
)
async def test_what_is_worthless_is_ignored(
    stack: Stack, content: str, fields: dict[str, Any], reason: str
) -> None:
    decision = await stack.remember(content, **fields)
    assert (decision.action, decision.id, decision.reason) == ("ignore", None, reason)
    assert len(decision.content) < 300
    assert await rows(stack) == 0


@on_both
async def test_what_no_database_takes_is_left_out_of_a_fact(stack: Stack) -> None:
    decision = await stack.remember("Anna\x00 likes \ud83d tea\ud83c\udf75", ttl="for a while")
    assert (decision.action, decision.expires_at) == ("add", None), "an end that nobody understands is none"
    assert await stack.known() == {"Anna likes \ufffd tea🍵"}


async def test_what_is_at_odds_in_private_is_put_to_no_judge_and_does_not_show_through(stack: Stack) -> None:
    judge = stack.rule(True)
    await stack.remember(PARIS, "mickael", subjects=("secret diary",))
    decision = await stack.remember(LYON, "mickael", "acme")
    [memory] = await stack.memories("ben", "acme")
    assert decision == Decision(LYON, "add", memory.id, "new")
    assert (memory.subjects, judge.asked) == ((), [])
    assert await stack.known("mickael") == {PARIS, LYON}


async def test_only_what_was_said_later_corrects_and_history_keeps_the_earlier(stack: Stack) -> None:
    current = await stack.remember(PARIS)
    late = await stack.remember(LYON, replaces=current.id, said_at=stack.clock.now - timedelta(seconds=1))
    assert (late.action, late.id, late.reason) == ("ignore", current.id, "said before what it is to correct")
    [step] = await stack.history.of(str(current.id), Audience.of("anna"))
    assert (step.old_content, step.new_content) == (LYON, PARIS)
    assert await stack.known() == {PARIS}
    same_time = await stack.remember("Mickael lives in Rome", replaces=current.id, said_at=stack.clock.now)
    assert (same_time.action, await stack.known()) == ("add", {PARIS, "Mickael lives in Rome"})


async def test_an_earlier_statement_of_what_was_replaced_since_does_not_bring_it_back(stack: Stack) -> None:
    said_at = stack.clock.now
    old = await stack.remember(PARIS, "anna", "acme")
    stack.clock.advance(days=1)
    new = await stack.remember(LYON, "anna", "acme", replaces=old.id)
    stack.clock.advance(days=1)
    again = await stack.remember(PARIS, "anna", "acme", said_at=said_at)
    assert (again.action, again.id, again.reason) == ("ignore", new.id, "said before what replaced it")
    assert await stack.known("cleo", "acme") == {LYON}
    await stack.remember(PARIS, "anna", "acme")
    assert await stack.known("cleo", "acme") == {LYON, PARIS}, "said again later, it counts"


async def test_an_old_message_does_not_bring_back_what_has_expired(stack: Stack) -> None:
    message = await stack.receive("I have the flu")
    said_at = stack.clock.now
    fields = {"message_id": message, "live": True, "said_at": said_at}
    await stack.remember("Anna has the flu", ttl="1h", **fields)
    stack.clock.advance(hours=2)
    again = await stack.remember("Anna has the flu", **fields)
    assert (again.action, again.reason) == ("ignore", "it had already expired")
    assert await stack.known() == set()


@on_both
async def test_a_correction_of_what_was_replaced_already_replaces_what_holds_now(stack: Stack) -> None:
    old = await stack.remember(PARIS, subjects=("home",))
    await stack.remember(LYON, replaces=old.id)
    stack.clock.advance(days=1)
    decision = await stack.remember("Mickael lives in Oslo", replaces=str(old.id)[:8])
    assert decision.action == "replace"
    assert (await stack.the_memory()).content == "Mickael lives in Oslo"
    assert (await stack.the_memory()).subjects == ("home",), "those of what it replaces"
    await stack.history.undo(str(decision.id), Audience.of("anna"), "anna", stack.clock.now)
    decision = await stack.remember("Mickael lives in Bonn", replaces=str(decision.id), subjects=("mickael",))
    assert [(m.content, m.subjects) for m in await stack.memories()] == [
        ("Mickael lives in Bonn", ("mickael",))
    ]


@on_both
async def test_parallel_corrections_of_one_fact_leave_one(stack: Stack) -> None:
    old = await stack.remember("Anna is 1")
    stack.clock.advance(days=1)
    age = [NewMemory(f"Anna is {years}", replaces=old.id) for years in range(2, 7)]
    origin = Provenance("anna", stack.clock.now, stated_now=True)
    await asyncio.gather(*(stack.writer.remember([new_memory], origin) for new_memory in age))
    assert len(await stack.memories()) == 1


async def test_a_model_that_repeats_a_temporary_fact_without_its_end_keeps_the_end(stack: Stack) -> None:
    again = "anna has the flu!"
    message = await stack.receive("I have the flu")
    until = stack.clock.now + timedelta(days=7)
    await stack.remember("Anna has the flu", ttl="7d", message_id=message, live=True)
    await stack.remember(again, message_id=message, live=True)
    assert [m.expires_at for m in await stack.memories()] == [until]
    stack.clock.advance(days=1)
    later = await stack.receive("still ill")
    await stack.remember(again, ttl="2w", message_id=later, live=True)
    assert (await stack.the_memory()).expires_at == stack.clock.now + timedelta(days=14)


@on_both
async def test_names_that_are_known_make_two_statements_meet(stack: Stack) -> None:
    await stack.remember("dev is also called Mickael")
    first = await stack.remember("dev lives in Paris", importance=0.4)
    second = await stack.remember("Mickael lives in Paris", importance=0.7)
    assert (second.action, second.id, second.target_id) == ("merge", first.id, first.id)
    [memory] = [one for one in await stack.memories() if one.id == first.id]
    assert (memory.content, memory.importance) == ("dev lives in Paris", 0.7)


async def test_what_was_only_recalled_is_not_linked_to_whoever_asked(stack: Stack) -> None:
    await stack.remember("The office has moved to Lyon", "anna", "acme")
    [recalled] = await stack.memories("ben", "acme")
    fields = {"said": "where is the office now?", "found": (hit(recalled),), "importance": 1.0}
    decision = await stack.remember(recalled.content, "ben", "acme", **fields)
    assert (decision.action, decision.id) == ("ignore", recalled.id)
    assert decision.reason.startswith("only repeats what was found")
    assert await stack.known("ben") == set()
    assert await stack.memories("ben", "acme") == [recalled]


async def test_what_the_message_says_itself_or_the_model_names_by_its_id_is_no_echo(stack: Stack) -> None:
    await stack.remember("Anna is ill", ttl="7d")
    for message, named in (("Anna is ill", False), ("I know, Anna is ill!", False), ("I am still ill", True)):
        stack.clock.advance(days=6)
        [recalled] = await stack.memories()
        fields = {"replaces": recalled.id} if named else {}
        await stack.remember("Anna is ill", ttl="7d", said=message, found=(hit(recalled),), **fields)
        assert (await stack.the_memory()).expires_at == stack.clock.now + timedelta(days=7)


async def test_what_another_told_and_the_prompt_held_is_not_linked_to_whoever_answers(stack: Stack) -> None:
    office = "The office has moved to Lyon"
    fact = await stack.remember(office, "anna", "acme", message_id=str(uuid4()))
    memory = await stack.the_memory("ben", "acme")
    for id in (fact.id, memory.message_id):
        fields = {"shown": frozenset({id}), "live": True, "replaces": fact.id}
        fields["message_id"] = await stack.receive("ok thanks", "ben", "acme")
        decision = await stack.remember(office, "ben", "acme", said="ok thanks", **fields)
        assert (decision.action, decision.id) == ("ignore", fact.id)
        assert await stack.known("ben") == set()
    await stack.remember(office, "ben", "acme", said="Indeed, the office has moved to Lyon.", **fields)
    assert await stack.known("ben") == {office}


LOVES, FED_UP = "Anna loves her job at the bakery", "Anna is fed up with her job at the bakery"


@pytest.mark.parametrize("ruling", [False, RuntimeError("the model is away")])
async def test_with_no_ruling_for_it_both_are_kept(stack: Stack, ruling: bool | Exception) -> None:
    judge = stack.rule(ruling)
    await stack.remember(LOVES)
    stack.clock.advance(days=1)
    assert (await stack.remember(FED_UP)).action == "add"
    assert len(judge.asked) == 1
    assert await stack.known() == {LOVES, FED_UP}


async def test_a_judge_is_asked_once_a_message_and_may_rule_that_it_replaces(stack: Stack) -> None:
    judge, began = stack.rule(True), stack.clock.now
    first = await stack.remember(LOVES)
    await stack.remember("Anna drinks coffee in the morning")
    stack.clock.advance(days=1)
    new_memories = [NewMemory(FED_UP), NewMemory("Anna drinks tea in the morning"), NewMemory("")]
    decision, *_ = await stack.writer.remember(new_memories, Provenance("anna", stack.clock.now))
    [doubts] = judge.asked
    assert Doubt(LOVES, began, FED_UP, stack.clock.now) in doubts
    assert {doubt.old for doubt in doubts} == {LOVES, "Anna drinks coffee in the morning"}
    assert (decision.action, decision.target_id) == ("replace", first.id)
    assert decision.reason == "a model judged that it takes its place"
    assert await stack.known() == {FED_UP, "Anna drinks tea in the morning"}


async def test_a_judge_hears_two_statements_in_the_order_in_which_they_were_said(stack: Stack) -> None:
    judge = stack.rule(True)
    current = await stack.remember(LOVES)
    now, earlier = stack.clock.now, stack.clock.now - timedelta(days=300)
    late = await stack.remember(FED_UP, said_at=earlier)
    assert judge.asked == [[Doubt(FED_UP, earlier, LOVES, now)]]
    assert (late.action, late.id, late.target_id) == ("ignore", current.id, current.id)
    assert late.reason.startswith("said before what is known")
    assert await stack.known() == {LOVES}
    [step] = await stack.history.of(str(current.id), Audience.of("anna"))
    assert step.old_content == FED_UP


async def test_what_keeps_being_overtaken_is_told(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    async def overtaken(*_: object) -> None:
        raise Overtaken("another writer changed the same data; try again")

    monkeypatch.setattr(stack.store, "insert", overtaken)
    with pytest.raises(StoreUnavailable, match="try again"):
        await stack.remember(SHOULDER, "mickael")
    assert await rows(stack) == 0


@on_both
async def test_parallel_turns_that_learn_the_same_store_it_once(stack: Stack, another: Stack) -> None:
    """With the highest importance of all."""
    turns = [
        (stack, another)[number % 2].remember(SHOULDER, "mickael", importance=0.3 + number * 0.025)
        for number in range(20)
    ]
    decisions = await asyncio.gather(*turns)
    memory = await stack.the_memory("mickael")
    assert {decision.id for decision in decisions} == {memory.id}
    assert sorted(decision.action for decision in decisions) == ["add", *["ignore"] * 19]
    assert memory.importance == pytest.approx(0.3 + 19 * 0.025)


@on_both
async def test_what_another_process_tells_between_the_search_and_the_decision_is_seen(
    stack: Stack, another: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stack.remember(ALIAS, "mickael")
    old = await stack.remember("Mickael lives in Paris", "mickael")
    search, decisions = stack.similar.search, list[Decision]()
    meanwhile = [(ROWS, None), ("Mickael lives in Lyon", str(old.id))]

    async def search_then_write(candidate: CandidateFact) -> SimilarSearch:
        rankings = await search(candidate)
        content, replaces = meanwhile[len(decisions)]
        stack.clock.advance(minutes=1)
        decisions.append(await another.remember(content, "mickael", replaces=replaces))
        return rankings

    monkeypatch.setattr(stack.similar, "search", search_then_write)
    decision = await stack.remember("Mickael rows every morning", "mickael")
    assert (decision.action, decision.id) == ("merge", decisions[0].id)
    decision = await stack.remember("Mickael lives in Oslo", "mickael", replaces=str(old.id), stated_now=True)
    assert (decision.action, decision.target_id) == ("replace", decisions[1].id)
    assert await stack.known("mickael") == {ALIAS, ROWS, "Mickael lives in Oslo"}


async def test_what_is_said_after_the_clock_went_back_a_day_still_corrects(stack: Stack) -> None:
    old = await stack.remember("Anna lives in Paris", message_id=await stack.receive("Paris"), live=True)
    stack.clock.advance(days=-1)
    for city in ("Lyon", "Oslo"):
        source = {"message_id": await stack.receive(city), "live": True}
        new = await stack.remember(f"Anna lives in {city}", replaces=str(old.id), **source)
        assert (new.action, new.target_id) == ("replace", old.id)
        stack.clock.advance(hours=1)
        old = new
    assert (await stack.the_memory()).content == "Anna lives in Oslo"

    imported = await stack.remember("Anna lives in Bonn", replaces=str(old.id))
    assert (imported.action, imported.id) == ("ignore", old.id), "it was said before"
