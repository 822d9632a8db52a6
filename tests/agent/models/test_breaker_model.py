"""A model's server that fails is left alone for a while, and one that is slow but writes is waited for. One
with a slot is asked one thing at a time, people first, and waiting is not its failure."""

import asyncio
from typing import Any

import pytest
from scripted_server import Asked, Drop, Fail, Hang, Say, answer

from agent.errors import ModelError, ModelUnavailable
from agent.models import breaker_model
from agent.models.breaker_model import Slots
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


async def test_people_go_before_what_only_consolidates():
    order, one = list[str](), Slots(1)

    async def ask(name: str, for_people: bool) -> None:
        async with one.slot(for_people=for_people):
            order.append(name)
            await asyncio.sleep(0.01)

    names = [("ana", True), ("consolidation", False), ("ben", True), ("cleo", True)]
    await asyncio.gather(*(ask(name, for_people) for name, for_people in names))
    assert order == ["ana", "ben", "cleo", "consolidation"]


async def test_consolidation_waits_for_people_for_a_while_only(monkeypatch):
    monkeypatch.setattr(breaker_model, "LONGEST_WAIT", 0.03)
    one, order = Slots(1), list[str]()

    async def ask(name: str, for_people: bool, delay: float) -> None:
        await asyncio.sleep(delay)
        async with one.slot(for_people=for_people):
            order.append(name)
            await asyncio.sleep(0.05)

    await asyncio.gather(
        ask("ana", True, 0),
        ask("consolidation", False, 0.01),
        ask("ben", True, 0.02),
        ask("cleo", True, 0.06),
    )
    assert order.index("consolidation") < order.index("cleo")


async def test_who_leaves_while_waiting_takes_no_slot():
    one = Slots(1)
    async with one.slot(for_people=True):
        waiting = asyncio.ensure_future(one.slot(for_people=True).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with asyncio.timeout(1), one.slot(for_people=False):
        pass


@pytest.mark.parametrize("streamed", [False, True])
async def test_five_people_on_one_slot_are_answered_one_after_the_other(open_pet, server, streamed):
    settings = {"openai_base_url": server.url, "model": "tiny", "provider": "llamacpp", "model_timeout": 1.0}
    pet = await open_pet(**settings, model_retries=0)
    running, most = 0, 0

    def answered(asked: Asked) -> Say:
        nonlocal running, most
        running += 1
        most = max(most, running)
        asyncio.get_running_loop().call_later(0.3, finish)
        return Say("Hello there, friend.", pause=0.1)

    def finish() -> None:
        nonlocal running
        running -= 1

    server.aside = answered

    async def ask(user: str) -> str:
        if not streamed:
            return (await pet.respond("hello", user=user)).message
        stream = pet.stream("hello", user=user)
        return "".join([piece async for piece in stream])

    replies = await asyncio.gather(*(ask(f"person {number}") for number in range(5)))
    assert replies == ["Hello there, friend."] * 5, "together they take longer than the timeout"
    assert most == 1
