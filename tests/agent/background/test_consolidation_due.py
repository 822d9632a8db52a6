"""When a conversation is consolidated: once for several exchanges, and not while nobody states anything."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from scripted_model import AnsweringModel

from agent import Companion
from agent.background.consolidation_due import ENOUGH, LONGEST, states
from agent.background.slice import MAX_CONVERSATIONS
from agent.types.client import ClientTurn
from memory.audience import Audience

OpenPet = Callable[..., Awaitable[Companion]]


async def talk(pet: Companion, *texts: str, hurry: bool = False, **where: Any) -> None:
    for text in texts:
        await pet.respond(text, user="ana", **where)
        await (await pet.runtime()).worker.settle(hurry=hurry)


@pytest.fixture
def model() -> AnsweringModel:
    return AnsweringModel(then={"summary": "A digest."})


@pytest.fixture
async def pet(open_pet: OpenPet, model: AnsweringModel) -> Companion:
    """After the beginning of a conversation, which the model has been asked about."""
    pet = await open_pet(given=AnsweringModel(), looking_back=model)
    await talk(pet, "I am Ana")
    assert len(model.asked) == 1
    return pet


async def test_one_call_reads_several_exchanges(pet: Companion, model: AnsweringModel) -> None:
    await talk(pet, *(f"I own boat number {n}" for n in range(ENOUGH)))

    assert len(model.asked) == 2
    assert all(f"I own boat number {n}" in model.asked[1] for n in range(ENOUGH))
    assert await pet.components.queue.counts() == (0, 0)


async def test_questions_and_single_words_wait_and_are_read_with_the_next_statements(
    pet: Companion, model: AnsweringModel, clock: Any
) -> None:
    await talk(pet, "Who am I?", "Thanks!")
    clock.advance(seconds=2 * LONGEST.total_seconds())
    await talk(pet, "Where is Lyon?", hurry=True)
    assert len(model.asked) == 1

    await talk(pet, *(f"I own boat number {n}" for n in range(ENOUGH)))

    assert "Who am I?" in model.asked[1], "nothing is skipped"


async def test_a_question_that_begins_a_conversation_adds_no_job(
    open_pet: OpenPet, model: AnsweringModel
) -> None:
    pet = await open_pet(given=AnsweringModel(), looking_back=model)
    worker = (await pet.runtime()).worker
    worker._stopped = True  # as if it were busy elsewhere

    await pet.respond("Who are you?", user="ana")
    assert await pet.components.queue.counts() == (0, 0)

    await pet.respond("I own a boat", user="ana")
    assert await pet.components.queue.counts() == (1, 0)
    worker._stopped = False
    await pet.settle()
    assert "Who are you?" in model.asked[0], "nothing is skipped"


async def test_without_a_model_many_conversations_of_one_message_leave_no_jobs(open_pet: OpenPet) -> None:
    pet = await open_pet(given=AnsweringModel())
    worker = (await pet.runtime()).worker
    worker._stopped = True  # as if it were busy elsewhere

    for n in range(20):
        await pet.respond(f"I own boat {n}", user="ana", conversation=f"talk {n}")
    assert await pet.components.queue.counts() == (0, 0)

    await pet.respond("My name is Ana", user="ana", conversation="the next")
    await pet.respond("I own another boat", user="ana", conversation="talk 0")
    assert await pet.components.queue.counts() == (2, 0)
    worker._stopped = False
    await pet.settle()
    told = await pet.components.summaries.newest(Audience.of("ana"), pet.clock(), 9)
    assert sorted(one.summary for one in told) == [
        "ana: I own boat 0.\nana: I own another boat.",
        "ana: My name is Ana.",
    ]


async def test_a_conversation_of_which_the_client_sends_the_last_message_alone_begins_only_once(
    open_pet: OpenPet,
) -> None:
    pet = await open_pet(given=AnsweringModel())
    for text in ("I own a boat", "My sister lives in Lyon"):
        await talk(pet, text, conversation="talk", client=ClientTurn())

    told = await pet.components.summaries.newest(Audience.of("ana"), pet.clock(), 9)
    assert [one.summary for one in told] == ["ana: I own a boat.\nana: My sister lives in Lyon."]


async def test_what_leaves_the_window_of_recent_messages_is_read_before(
    open_pet: OpenPet, model: AnsweringModel
) -> None:
    pet = await open_pet(given=AnsweringModel(), looking_back=model, history_messages=4)
    await talk(pet, "I am Ana", "Who am I?")
    assert len(model.asked) == 1

    await talk(pet, "And who are you?")

    assert "Who am I?" in model.asked[1]
    assert "And who are you?" in model.asked[1]


async def test_long_messages_do_not_wait(open_pet: OpenPet, model: AnsweringModel) -> None:
    pet = await open_pet(given=AnsweringModel(), looking_back=model, history_budget="200 characters")
    await talk(pet, "I am Ana", "I have much to tell. " * 5)

    assert len(model.asked) == 2


async def test_a_statement_waits_for_others_at_most_some_hours(
    pet: Companion, model: AnsweringModel, clock: Any
) -> None:
    await talk(pet, "I own a boat")
    assert len(model.asked) == 1
    [job] = await pet.components.queue.listed(clock())
    assert job.due_at == clock() + LONGEST

    clock.advance(seconds=LONGEST.total_seconds())
    await (await pet.runtime()).worker.settle(hurry=False)

    assert len(model.asked) == 2
    assert await pet.components.queue.counts() == (0, 0)


async def test_who_goes_on_elsewhere_is_known_there(pet: Companion, model: AnsweringModel) -> None:
    await talk(pet, "I own a boat")
    await talk(pet, "good morning everybody", place="acme/general")
    assert "I own a boat" in model.asked[-1] or "I own a boat" in model.asked[-2]

    await talk(pet, "I own a kite", place="acme/general")

    assert len(model.asked) == 3, "the conversation that goes on waits"


async def test_in_a_hurry_nothing_waits(pet: Companion, model: AnsweringModel) -> None:
    await talk(pet, "I own a boat")
    await pet.settle()

    assert len(model.asked) == 2
    assert await pet.components.queue.counts() == (0, 0)


async def test_what_waits_is_read_by_the_next_process(
    open_pet: OpenPet, pet: Companion, model: AnsweringModel, clock: Any
) -> None:
    await talk(pet, "I own a boat")
    clock.advance(seconds=(LONGEST + timedelta(minutes=1)).total_seconds())
    next_one = await open_pet(given=AnsweringModel(), looking_back=model)

    await (await next_one.runtime()).worker.settle(hurry=False)

    assert "I own a boat" in model.asked[1]


@pytest.mark.parametrize(
    "text",
    [
        "I'm vegan",
        "Who am I? I forgot.",
        "אני גרה בחיפה",
        "我怀孕了",
        "Lyon!\nWe moved there",
        "“Are you?” he said",
        "I moved to Lyon, where can I find a doctor?",
        "娘が九月から学校に行くけど、何を買えばいい？",
        "ابنتي تبدأ المدرسة، ماذا أشتري؟",
    ],
)
def test_a_statement_is_told_by_its_form(text: str) -> None:
    assert states(text)


@pytest.mark.parametrize(
    "text",
    ["Who am I?", "ok", "Thanks! Really?", "你好吗？", "“Where is Lyon?”", "So, who, in short, am I?", ""],
)
def test_questions_and_single_words_state_nothing(text: str) -> None:
    assert not states(text)


@pytest.fixture
async def behind(open_pet: OpenPet, model: AnsweringModel) -> Companion:
    """After six conversations of one statement each, while the worker was busy elsewhere."""
    pet = await open_pet(given=AnsweringModel(), looking_back=model)
    worker = (await pet.runtime()).worker
    worker._stopped = True
    for n in range(MAX_CONVERSATIONS):
        await pet.respond(f"I own boat number {n}", user="ana", conversation=f"talk {n}")
    worker._stopped = False
    return pet


async def summaries(pet: Companion) -> set[str]:
    told = await pet.components.summaries.newest(Audience.of("ana"), pet.clock(), 99)
    return {one.summary for one in told}


QUOTED = {f"ana: I own boat number {n}." for n in range(MAX_CONVERSATIONS)}


async def test_conversations_that_have_just_begun_are_read_in_one_call(
    behind: Companion, model: AnsweringModel, rows: Any
) -> None:
    fact = {"text": "Ana owns boat number 3", "importance": "high", "tags": []}
    model._answers = [{"summary": "Ana owns boats.", "new_facts": [fact]}]
    await behind.respond("I own a plane", user="ana", place="acme/general")

    await behind.settle()

    assert len(model.asked) == 2, "another place is read by itself"
    assert model.asked[0].count("(another conversation)") == MAX_CONVERSATIONS - 1
    assert "plane" not in model.asked[0]
    [memory] = await behind.memories.list(user="ana")
    [said] = rows("SELECT text FROM messages WHERE id = ?", memory.message_id)
    assert said["text"] == "I own boat number 3"
    assert await summaries(behind) == QUOTED, "each has a summary of its own words alone"
    assert await behind.components.queue.counts() == (0, 0)


async def test_an_unusable_answer_about_several_conversations_costs_none_of_them(
    behind: Companion, model: AnsweringModel
) -> None:
    model._answers = ["I cannot say anything about that."]

    await behind.settle()

    assert [sum(f"boat number {n}" in asked for n in range(9)) for asked in model.asked] == [6, 1, 5]
    assert await behind.components.queue.counts() == (0, 0)


async def test_conversations_are_read_one_by_one_if_words_do_not_tell_which_of_them_states_a_fact(
    open_pet: OpenPet, model: AnsweringModel, rows: Any
) -> None:
    def notes(asked: str) -> dict[str, Any]:
        fact = {"text": "Ana owns a ship", "importance": "high", "tags": []}
        return {"summary": "", "new_facts": [fact] if "bateau" in asked else []}

    pet = await open_pet(given=AnsweringModel(), looking_back=model)
    model._then = notes
    worker = (await pet.runtime()).worker
    worker._stopped = True
    for text in ("J'ai un bateau", "Lyon me plait bien"):
        await pet.respond(text, user="ana", conversation=text)
    worker._stopped = False

    await pet.settle()

    [memory] = await pet.memories.list(user="ana")
    said = rows("SELECT text FROM messages WHERE id = ?", memory.message_id)
    assert said == [{"text": "J'ai un bateau"}]


async def test_where_one_of_several_conversations_has_changed_nothing_of_them_is_written(
    behind: Companion, model: AnsweringModel, rows: Any
) -> None:
    def forgets(_: str) -> dict[str, Any]:
        rows("UPDATE messages SET forgotten_at = sent_at, text = '' WHERE text = 'I own boat number 3'")
        fact = {"text": "Ana owns boat number 3", "importance": "high", "tags": []}
        return {"summary": "Ana owns boats.", "new_facts": [fact]}

    model._answers = [forgets]

    await behind.settle()

    assert "boat number 3" not in "".join(model.asked[1:])
    assert await behind.memories.list(user="ana") == []
    assert await summaries(behind) == QUOTED - {"ana: I own boat number 3."}
    assert await behind.components.queue.counts() == (0, 0)
