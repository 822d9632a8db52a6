"""A server with one slot is asked one thing at a time, people first, and waiting is not its failure."""

import asyncio

import pytest
from scripted_server import Asked, Say

from agent.models.wire import slots
from agent.models.wire.slots import Slots


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
    monkeypatch.setattr(slots, "LONGEST_WAIT", 0.03)
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
    given = {"openai_base_url": server.url, "model": "tiny", "provider": "llamacpp", "model_timeout": 1.0}
    pet = await open_pet(**given, model_retries=0)
    at_once, most = 0, 0

    def answered(asked: Asked) -> Say:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        asyncio.get_running_loop().call_later(0.3, left)
        return Say("Hello there, friend.", pause=0.1)

    def left() -> None:
        nonlocal at_once
        at_once -= 1

    server.aside = answered

    async def ask(user: str) -> str:
        if not streamed:
            return (await pet.respond("hello", user=user)).message
        stream = pet.stream("hello", user=user)
        return "".join([piece async for piece in stream])

    replies = await asyncio.gather(*(ask(f"person {number}") for number in range(5)))
    assert replies == ["Hello there, friend."] * 5, "together they take longer than the timeout"
    assert most == 1
