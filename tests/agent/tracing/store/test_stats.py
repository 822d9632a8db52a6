"""What turns cost, summed up."""

from datetime import timedelta

import pytest
from scripted_server import Call, Fail, Say, answer

from agent.errors import ModelError
from agent.tracing.store.filters import TraceFilter
from agent.tracing.store.stats import percentile, stats_of
from agent.tracing.trace import cost_of
from agent.types import Usage

EVERY = TraceFilter(kinds=frozenset())


async def test_tools_and_models_are_counted_with_their_errors(pet_at, first_way, server, rows):
    pet = await pet_at(first_way, model_retries=0, consolidate="off")
    search = Call("search_memories", {"query": "tea"})
    server.script([search, Call("nothing")], answer("Tea."), Fail(500))
    await pet.respond("tea?", user="ana")
    with pytest.raises(ModelError):
        await pet.respond("coffee?", user="ana")
    await pet.components.recorder.flush()

    found = await stats_of(pet.traces, EVERY)

    total = found["total"]
    assert (total["turns"], total["errors"], total["searched"]) == (2, 1, 1)
    assert total["statuses"] == {"tool_error": 1, "error": 1}
    assert found["tools"] == {
        "nothing": {"calls": 1, "errors": 1},
        "search_memories": {"calls": 1, "errors": 0},
    }
    assert (total["input"], total["output"]) == (20, 10)
    [day] = found["days"].items()
    assert day == (f"{pet.clock():%Y-%m-%d}", found["people"]["ana"] | {})
    assert found["models"].keys() == {"tiny"}
    later = TraceFilter(since=pet.clock() + timedelta(hours=1), kinds=frozenset())
    assert (await stats_of(pet.traces, later))["total"]["turns"] == 0


async def test_consolidation_counts_for_who_pays_for_it(pet_at, first_way, server):
    pet = await pet_at(first_way)
    server.script(answer("Tea."), answer("Tea."))
    server.script_consolidations(Say("no JSON"))
    await pet.respond("tea?", user="ana", place="acme")
    await pet.remember("Ana drinks tea", user="ana")
    await pet.settle()
    found = await stats_of(pet.traces, EVERY)
    assert found["people"]["ana"]["upkeep"] == 0
    assert found["models"].keys() == {"tiny"}
    place = found["people"]["place:acme"]
    assert (place["turns"], place["upkeep"], place["upkeep_errors"], place["upkeep_tokens"]) == (0, 1, 1, 30)
    [turn] = await pet.traces.list(TraceFilter(failed=True), pet.clock())
    assert turn.trouble == ["background work malformed"]


async def test_a_streamed_turn_says_when_its_first_letter_came(pet_at, one_streamed, server):
    pet = await pet_at(one_streamed, consolidate="off")
    server.script(Call("search_memories", {"query": "tea"}), answer("Tea."))
    async with pet.stream("tea?", user="ana") as stream:
        assert "".join([piece async for piece in stream]) == "Tea."
    await pet.settle()
    trace = await pet.traces.get("last", pet.clock())
    search, words = trace.spans("call")
    assert "first" not in search.data, "it wrote no letter"
    assert trace.summary.first == pytest.approx(words.at + words.data["first"], abs=0.2)
    total = (await stats_of(pet.traces, EVERY))["total"]
    assert total["first_p95"] == pytest.approx(trace.summary.first)


def test_a_model_is_priced_by_its_name_without_maker_and_version():
    usage = Usage(input=1_000_000, output=500_000, cached=400_000)
    assert cost_of([("openai/gpt-5-mini-2025-08-07", usage)]) == pytest.approx(0.6 * 0.25 + 0.4 * 0.025 + 1.0)
    assert cost_of([("gpt-5-mini", usage), ("nobodys", usage)]) is None
    assert cost_of([("gpt-5-mini", Usage()), ("nobodys", Usage())]) is None


def test_a_percentile_is_one_of_the_values():
    seconds = [float(n) for n in range(1, 21)]
    assert [percentile(seconds, 50), percentile(seconds, 95)] == [10.0, 19.0]
    assert [percentile([3.0], 95), percentile([], 50)] == [3.0, None]
