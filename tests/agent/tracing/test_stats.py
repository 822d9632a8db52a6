"""What turns cost, summed up."""

from datetime import timedelta

import pytest
from scripted_server import Call, Fail, answer

from agent.errors import ModelError
from agent.tracing.filters import TraceFilter
from agent.tracing.stats import Price, percentile, stats_of
from agent.types import Usage

EVERY = TraceFilter(kinds=frozenset())


async def test_tools_and_models_are_counted_with_their_errors(pet_at, first_way, server, rows):
    pet = await pet_at(first_way, model_retries=0, look_back="off")
    search = Call("search_memories", {"query": "tea"})
    server.script([search, Call("nothing")], answer("Tea."), Fail(500))
    await pet.respond("tea?", user="ana")
    with pytest.raises(ModelError):
        await pet.respond("coffee?", user="ana")
    await pet.components.recorder.flush()

    found = (await stats_of(pet.traces, EVERY, pet.clock())).json({"tiny": Price(1.0, 2.0)})

    assert found["turns"]["calls"] == 2
    assert found["turns"]["statuses"] == {"tool_error": 1, "error": 1}
    assert (found["tools"]["search_memories"]["calls"], found["tools"]["search_memories"]["errors"]) == (1, 0)
    assert (found["tools"]["nothing"]["calls"], found["tools"]["nothing"]["errors"]) == (1, 1)
    model = found["models"]["tiny"]
    assert (model["calls"], model["errors"], model["input"], model["output"]) == (3, 1, 20, 10)
    assert model["cost"] == pytest.approx((20 * 1.0 + 10 * 2.0) / 1_000_000)
    later = TraceFilter(since=pet.clock() + timedelta(hours=1), kinds=frozenset())
    assert (await stats_of(pet.traces, later, pet.clock())).turns.calls == 0
    rows("UPDATE trace_bodies SET body = x'00' WHERE trace_id IN (SELECT id FROM traces WHERE said = 'tea?')")
    assert (await stats_of(pet.traces, EVERY, pet.clock())).turns.calls == 1, "without what cannot be read"


def test_a_percentile_is_one_of_the_values():
    seconds = [float(n) for n in range(20, 0, -1)]
    assert percentile(seconds, 50) == 10.0
    assert percentile(seconds, 95) == 19.0
    assert percentile([3.0], 95) == 3.0
    assert percentile([], 50) is None


def test_cached_tokens_may_have_a_price_of_their_own():
    usage = Usage(input=1_000_000, output=500_000, cached=400_000)
    assert Price(2.0, 10.0).of(usage) == 7.0
    assert Price(2.0, 10.0, 0.5).of(usage) == pytest.approx(1.2 + 0.2 + 5.0)
