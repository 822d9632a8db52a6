"""Fixtures for replays: a turn that searches, remembers and answers, and its trace."""

from typing import Any

import pytest
from scripted_server import Call, Fail, answer

from agent.errors import ModelError
from agent.tracing.trace import Trace


@pytest.fixture
async def pet(pet_at, first_way):
    pet = await pet_at(first_way, consolidate="plain")
    await pet.remember("Ana loves her dog Rex", user="ana", subjects=["ana", "rex"])
    await pet.remember("Ana's dentist is Leo", user="ana", subjects=["ana", "leo"])
    return pet


@pytest.fixture
def recorded(pet, server, clock):
    """`await recorded(*script, said=…)`: the trace of one turn; without a script it searches, remembers and
    answers."""

    async def record(*script: Any, said: str = "who do I love?", user: str = "ana", **more: Any) -> Trace:
        clock.advance(minutes=1)
        server.script(*(script or SEARCHES_REMEMBERS_ANSWERS))
        reply = await pet.respond(said, user=user, **more)
        await pet.settle()
        return await pet.traces.get(reply.trace_id, pet.clock())

    return record


@pytest.fixture
def failing(server):
    """`await failing(pet)`: the trace of a turn whose model refuses the request."""

    async def fail(pet: Any) -> Trace:
        server.script(Fail(400, "no such thing"))
        with pytest.raises(ModelError) as error:
            await pet.respond("hello", user="ana")
        await pet.settle()
        return await pet.traces.get(str(error.value.trace_id), pet.clock())

    return fail


SEARCHES_REMEMBERS_ANSWERS = (
    Call("search_memories", {"query": "whom Ana loves"}),
    Call("remember", {"content": "Ana asks whom she loves", "subjects": ["ana"], "ttl": "7d"}),
    answer("You love your dog Rex."),
)
