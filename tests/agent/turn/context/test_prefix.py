"""The prompts of one talk begin alike, so that a server computes only what is new."""

import json

import pytest
from scripted_server import Asked, Call, Say, answer

from agent.types.budget import Budget

SEARCH = Call("search_memories", {"query": "boat"})


def pieces(asked: Asked) -> list[bytes]:
    """What a server computes one after the other: the system message, the tools, each message."""
    items = asked.json.get("input") or asked.json["messages"]
    messages = [item for item in items if item.get("role") != "system"]
    return [json.dumps(one).encode() for one in (asked.system, asked.json.get("tools"), *messages)]


def before_the_question(asked: Asked) -> bytes:
    return b"".join(pieces(asked)[:-1])


@pytest.mark.parametrize("place", [None, "acme/general"])
async def test_all_before_the_question_is_in_the_next_prompt_until_a_block_is_cut_off(
    pet_at, first_way, server, clock, place
):
    pet = await pet_at(first_way)
    server.script_consolidations(*(Say(json.dumps({"summary": f"Stories, {n}."})) for n in range(4)))
    for n in range(16):
        server.script(answer(f"Reply {n}", {"content": f"Ana told story {n}", "subjects": ["ana"]}))
        await pet.respond(f"Story {n}", user="ana", author="Ana", place=place, settle=True)
        await pet.people.set_context("goals", f"goal {n}", user="ana")
        clock.advance(hours=n % 9)
        await pet.settle()

    asked = server.asked
    assert [len(pieces(one)) - 3 for one in asked] == [0, 2, 4, 6, 8, 10, 12] + [6, 8, 10, 12] * 2 + [6]
    whole = [b"".join(pieces(one)) for one in asked]
    again = [then.startswith(before_the_question(one)) for one, then in zip(asked, whole[1:], strict=False)]
    assert again == [True] * 6 + [False, True, True, True] * 2 + [False]
    assert len({tuple(pieces(one)[:2]) for one in asked}) == 1, "system message and tools stay"


async def test_what_is_about_to_be_cut_off_is_in_the_summary_one_turn_before(pet_at, first_way, server):
    pet = await pet_at(first_way)
    consolidated = list[int]()
    for n in range(14):
        server.script(answer(f"Reply {n}"))
        await pet.respond(f"Story {n}", user="ana")
        await pet.settle(hurry=False)
        consolidated.append(len(server.consolidations))

    assert [len(asked.conversation) - 1 for asked in server.asked][5:] == [10, 12, 6, 8, 10, 12, 6, 8, 10]
    assert consolidated == [0] * 5 + [1] * 4 + [2] * 4 + [3]


async def test_what_tools_bring_follows_what_was_asked(pet_at, some_way, server):
    pet = await pet_at(some_way, max_turns=3)
    server.script(SEARCH, SEARCH, answer("Nothing."))

    await pet.respond("where is my boat?", user="ana")

    one, two, three = (b"".join(pieces(asked)) for asked in server.asked)
    assert two.startswith(one)
    assert three.startswith(two), "the last call too"


async def test_a_history_above_its_budget_begins_anew_only_now_and_then(pet_at, first_way, server):
    pet = await pet_at(first_way, history_budget=Budget(1_000), history_messages=100)
    server.script(*[answer("y" * 60)] * 20)
    for n in range(20):
        await pet.respond(f"{n:02} {'x' * 57}", user="ana")

    begins = [asked.conversation[0][1][-60:] for asked in server.asked]
    assert len({*begins[8:]}) <= 4, "it moves every third turn or more seldom"


async def test_a_search_that_finds_the_message_before_does_not_move_the_start(pet_at, first_way, server):
    pet = await pet_at(first_way, history_messages=4)
    server.script(*map(answer, ("Oh!", "Ah!", "Hm.")), SEARCH, answer("Green."), answer("Yes."))
    for text in ("My boat is called Albatross", "It rains", "It snows", "what of my boat?", "really?"):
        await pet.respond(text, user="ana")

    counts = [len(asked.conversation) - 1 for asked in server.asked if not asked.results]
    assert counts == [0, 2, 4, 2, 4]
