"""A model's server that fails is left alone for a while, and one that is slow but writes is waited for."""

from typing import Any

import pytest
from scripted_server import Drop, Fail, Hang, Say, answer

from agent.errors import ModelError, ModelUnavailable
from memory.process.breaker import FIRST_PAUSE


async def _fault(pet: Any, way: Any) -> ModelError:
    with pytest.raises(ModelError) as raised:
        await way.ask(pet, "are you there?", user="ana")
    return raised.value


async def test_after_three_failures_of_any_kind_a_turn_fails_at_once_until_a_probe(
    pet_at, one_streamed, server, clock
):
    pet = await pet_at(one_streamed, model_retries=0, model_timeout=1.0)
    server.script(Fail(401), Drop(), Hang(), answer("Here I am."))
    for _ in range(3):
        await _fault(pet, one_streamed)
    fault = await _fault(pet, one_streamed)
    assert isinstance(fault, ModelUnavailable)
    assert "did not answer within 1 s" in str(fault), "as the last failure said"
    assert "not tried again before 09:30:02 UTC" in str(fault)
    assert len(server.asked) == 3
    clock.now += FIRST_PAUSE
    reply, _ = await one_streamed.ask(pet, "and now?", user="ana")
    assert reply.message == "Here I am."


async def test_one_persons_failing_requests_do_not_stop_the_others(pet_at, first_way, server):
    pet = await pet_at(first_way, model_retries=0)
    server.script(answer("Hello."), *[Fail(500)] * 4, answer("Here I am."))
    await first_way.ask(pet, "hello", user="bob")
    for _ in range(4):
        with pytest.raises(ModelError):
            await first_way.ask(pet, "what makes it fail", user="eve")
    reply, _ = await first_way.ask(pet, "are you there?", user="bob")
    assert reply.message == "Here I am."
    assert len(server.asked) == 1 + 4 + 1


async def test_requests_that_a_server_refuses_do_not_open_it(pet_at, first_way, server):
    pet = await pet_at(first_way)
    server.script(*[Fail(400)] * 5, answer("Here I am."))
    for _ in range(5):
        await _fault(pet, first_way)
    reply, _ = await first_way.ask(pet, "shorter", user="ana")
    assert reply.message == "Here I am."


async def test_a_stream_may_take_longer_than_the_timeout_while_it_flows(pet_at, one_streamed, server):
    pet = await pet_at(one_streamed, model_timeout=0.25)
    text = "Once upon a time there was a dog called Rex who liked to swim."
    server.script(Say(text, pause=0.04))  # nine pieces
    reply, _ = await one_streamed.ask(pet, "a story, please", user="ana")
    assert reply.message == text


async def test_a_consolidation_may_take_longer_than_the_timeout_while_it_flows(
    pet_at, first_way, server, rows
):
    pet = await pet_at(first_way, consolidate="model", model_timeout=0.25, model_retries=0)
    server.script(answer("Ahoy."))
    server.script_consolidations(Say('{"summary": "Ana rows on the lake in Annecy every day."}', pause=0.04))
    await pet.respond("I row", user="ana")
    await pet.settle()
    assert [row["summary"] for row in rows("SELECT summary FROM active_conversations")] == [
        "Ana rows on the lake in Annecy every day."
    ]


async def test_a_dead_model_of_consolidation_is_called_a_few_times_and_loses_no_work(
    pet_at, first_way, server, clock, rows
):
    pet = await pet_at(first_way, consolidate="model", model_retries=0)
    server.then = answer("Yes.")
    server.script_consolidations(*[Fail(500)] * 4)
    for number in range(6):
        await pet.respond(f"I bought book {number}", user=f"person-{number}")
        await pet.settle()
    assert len(server.consolidations) == 3
    assert len(server.asked) == 6
    waiting = rows("SELECT attempts FROM work WHERE kind = 'consolidate'")
    assert len(waiting) == 6
    assert sum(row["attempts"] for row in waiting) == 3
    await pet.components.recorder.flush()
    traced = rows("SELECT count(*) AS n FROM traces WHERE kind = 'consolidate'")
    assert traced == [{"n": 3}], "work that only waited leaves no trace"
    for _ in range(3):  # a failed probe, a good one, the rest
        clock.advance(seconds=10)
        await pet.settle()
    assert len(server.consolidations) == 3 + 1 + 6
    assert rows("SELECT id FROM work WHERE kind = 'consolidate'") == []
