"""A second model answers while the first does not, and never instead of a refusal."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents.testing import ScriptedModel
from scripted_server import Call, Drop, Fail, Hang, Raw, Say, ScriptedServer, answer

from agent.errors import BadInput, ModelError, ModelRejected, ModelUnavailable, SettingsError
from agent.replay.replay import replay
from hachi import Companion, Settings
from memory.process.breaker import FIRST_PAUSE

QUOTA = Fail(429, "You exceeded your current quota, please check your plan and billing details.")
SEARCH = Call("search_memories", {"query": "tea"})
HELLO = answer("Hello from the second.")


@pytest.fixture
async def second() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer.running() as running:
        yield running


@pytest.fixture
def pet_with(pet_at, second):
    async def opened(way: Any, **settings: Any) -> Companion:
        usual = {"fallback_model": f"spare@{second.url}", "fallback_key": "sk-second", "model_retries": 0}
        return await pet_at(way, **usual | settings)

    return opened


async def _calls(pet: Companion, trace: str) -> list[tuple[str, bool]]:
    """The model of each call of a turn, and whether it failed."""
    await pet.components.recorder.flush()
    found = await pet.traces.get(trace)
    return [(call.name, call.error is not None) for call in found.spans("call")]


@pytest.mark.parametrize(
    "fault", [Drop(), Fail(503), Hang(), QUOTA, Fail(402, "Insufficient Balance"), Raw(b"<html>")], ids=repr
)
async def test_the_second_answers_where_the_first_does_not(pet_with, some_way, server, second, fault):
    pet = await pet_with(some_way, model_timeout=0.6)
    server.script(fault)
    second.script(HELLO)
    reply, shown = await some_way.ask(pet, "hello", user="ana")
    assert (reply.message, shown, reply.model) == (
        "Hello from the second.",
        "Hello from the second.",
        "spare",
    )
    assert await _calls(pet, reply.trace_id) == [("tiny", True), ("spare", False)]
    assert (await pet.traces.get(reply.trace_id)).summary.model == "spare"
    assert second.asked[0].headers["authorization"] == "Bearer sk-second"
    assert second.asked[0].json["model"] == "spare"
    assert "/chat/completions" in second.asked[0].path


async def test_a_fault_of_a_moment_is_for_the_first_to_mend(pet_with, some_way, server, second):
    pet = await pet_with(some_way, model_retries=1)
    server.script(Fail(429, "Rate limit reached; try again in 1s"), answer("Here I am."))
    reply, _ = await some_way.ask(pet, "hello", user="ana")
    assert (reply.model, second.asked) == ("tiny", [])
    server.script(Fail(503), Fail(503))
    second.script(HELLO)
    reply, _ = await some_way.ask(pet, "hello?", user="ana")
    assert (reply.model, len(server.asked)) == ("spare", 4)


async def test_a_fault_of_a_moment_is_for_the_second_to_mend_too(pet_with, some_way, server, second):
    pet = await pet_with(some_way, model_retries=1, model_timeout=5.0)
    server.script(QUOTA)
    second.script(Fail(503), HELLO)
    reply, shown = await some_way.ask(pet, "hello", user="ana")
    assert (reply.message, shown, reply.model) == (shown, "Hello from the second.", "spare")
    assert await _calls(pet, reply.trace_id) == [("tiny", True), ("spare", True), ("spare", False)]


async def test_a_talk_that_is_too_long_for_the_second_is_made_to_fit_it(pet_with, some_way, server, second):
    pet = await pet_with(some_way)
    for number in range(5):
        server.script(answer("Hm."))
        await pet.respond(f"{number}: {'a long story, told again; ' * 60}", user="ana")
    too_long = "This model's maximum context length is 4096 tokens. Please reduce the length."
    second.refuses = lambda asked: Fail(400, too_long) if len(asked.text) > 9_000 else None
    server.script(QUOTA)
    second.script(HELLO)
    reply, _ = await some_way.ask(pet, "and now?", user="ana")
    assert (reply.message, reply.model) == ("Hello from the second.", "spare")
    assert "4: a long story" in second.asked[0].text


async def test_what_the_first_refuses_is_refused(pet_with, some_way, server, second):
    pet = await pet_with(some_way)
    server.script(Fail(400, "I do not answer this"))
    with pytest.raises(ModelRejected, match="I do not answer this"):
        await some_way.ask(pet, "hello", user="ana")
    assert second.asked == []


async def test_half_a_shown_reply_is_never_ended_by_the_other(pet_with, streamed, server, second):
    pet = await pet_with(streamed)
    server.script(Drop(answer("Hello there, dear Ana").text, 4))
    with pytest.raises(ModelUnavailable, match="was lost before its answer was whole"):
        await streamed.ask(pet, "hello", user="ana")
    assert second.asked == []


async def test_a_silent_first_is_asked_again_after_its_pause(pet_with, some_way, server, second, clock):
    pet = await pet_with(some_way)
    server.script(*[Fail(500)] * 3, answer("I am back."))
    second.then = HELLO
    for _ in range(5):
        reply, _ = await some_way.ask(pet, "hello", user="ana")
        assert reply.model == "spare"
    assert len(server.asked) == 3, "while it is left alone it is not waited for"
    assert pet.admin.health.unavailable == ["model"]
    assert pet.components.breakers["fallback model"].answered == 5
    clock.now += FIRST_PAUSE
    reply, _ = await some_way.ask(pet, "and now?", user="ana")
    assert (reply.message, reply.model) == ("I am back.", "tiny")


async def test_one_error_says_why_neither_answers(pet_with, some_way, server, second):
    pet = await pet_with(some_way)
    server.script(QUOTA)
    second.script(Fail(401, "wrong key sk-second"))
    with pytest.raises(ModelError) as raised:
        await some_way.ask(pet, "hello", user="ana")
    told = str(raised.value)
    assert f"{server.url} answered 429: You exceeded your current quota" in told
    assert f"; the fallback model: {second.url} answered 401: wrong key …; check HACHI_FALLBACK_KEY" in told
    assert "\n" not in told


async def test_what_the_first_wants_back_is_not_sent_to_the_second(pet_with, way, server, second):
    pet = await pet_with(way, fallback_model=f"spare@{second.url}")
    thoughts = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"}
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "search_memories"}
    call |= {"arguments": '{"query": "tea"}', "status": "completed"}
    if way.api == "responses":
        body: dict[str, Any] = {"id": "r", "object": "response", "output": [thoughts, call]}
    else:
        function = {"name": "search_memories", "arguments": '{"query": "tea"}'}
        calls = [{"id": "c1", "type": "function", "function": function, "extra_content": {"sig": "c2VjcmV0"}}]
        message = {"role": "assistant", "reasoning_content": "c2VjcmV0", "tool_calls": calls}
        body = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    server.script(Raw(json.dumps(body).encode(), "application/json"), Drop())
    second.script(SEARCH, HELLO)
    reply, _ = await way.ask(pet, "do I like tea?", user="ana")
    assert reply.message == "Hello from the second."
    assert await _calls(pet, reply.trace_id) == [
        ("tiny", False),
        ("tiny", True),
        ("spare", False),
        ("spare", False),
    ]
    assert "c2VjcmV0" in json.dumps(server.asked[1].json), "the first gets it back"
    for asked in second.asked:
        assert "c2VjcmV0" not in json.dumps(asked.json)
        assert len(asked.call_ids) == len(asked.results) > 0, "what the tools found is sent"


async def test_the_form_follows_the_provider_of_the_second(pet_with, first_way, server, second):
    from agent.models.choice import providers

    local = f"spare@{second.url}"
    pet = await pet_with(first_way, structured="schema", fallback_model=local, answer_tokens=77)
    server.script(Drop())
    second.script(HELLO)
    await first_way.ask(pet, "hello", user="ana")
    assert server.asked[0].form
    assert server.asked[0].json["max_output_tokens"] == 77
    assert second.asked[0].form is None, "an unknown server is asked by the prompt alone"
    assert second.asked[0].json["max_tokens"] == 1000
    assert "store" not in second.asked[0].json
    assert providers.api_of(Settings(openai_base_url=second.url)) == "chat"


async def test_consolidation_is_done_by_the_second_too(pet_with, first_way, server, second, rows):
    pet = await pet_with(first_way, consolidate="model")
    server.script(answer("Nice."))
    server.script_consolidations(Fail(500))
    second.script_consolidations(Say(json.dumps({"summary": "Ana bought a kite."})))
    await pet.respond("I bought a kite", user="ana")
    await pet.settle()
    assert (len(server.consolidations), len(second.consolidations)) == (1, 1)
    assert rows("SELECT id FROM work WHERE kind = 'consolidate'") == []
    await pet.components.recorder.flush()
    assert rows("SELECT model FROM traces WHERE kind = 'consolidate'") == [{"model": "spare"}]


@pytest.mark.parametrize(("fault", "name"), [(QUOTA, "spare"), (Fail(503), "tiny")], ids=["quota", "away"])
async def test_a_turn_by_two_models_is_replayed_the_same(pet_with, some_way, server, second, fault, name):
    spare = f"{name}@{second.url}"
    pet = await pet_with(some_way, structured="schema", consolidate="model", fallback_model=spare)
    server.script(SEARCH, fault)
    server.script_consolidations(Fail(500))
    second.script(SEARCH, HELLO)
    reply, _ = await some_way.ask(pet, "do I like tea?", user="ana")
    await pet.settle()
    await pet.components.recorder.flush()
    whole = await pet.traces.get_with_jobs(reply.trace_id, pet.clock())
    asked = len(server.asked), len(second.asked)
    assert reply.model == (name if name == "spare" else f"tiny@{second.url[7:-3]}"), "told apart"
    assert [trace.summary.model for trace in (whole.trace, *whole.jobs)] == [reply.model] * 2
    assert (await replay(pet, whole)).differences == ()
    assert (len(server.asked), len(second.asked)) == asked


async def test_a_turn_that_neither_answered_is_replayed_the_same(pet_with, first_way, server, second, rows):
    pet = await pet_with(first_way)
    server.script(Fail(500))
    second.script(Fail(500))
    with pytest.raises(ModelError):
        await pet.respond("hello", user="ana")
    await pet.components.recorder.flush()
    id = rows("SELECT id FROM traces")[0]["id"]
    assert (await replay(pet, await pet.traces.get_with_jobs(id, pet.clock()))).differences == ()


async def test_a_model_that_a_program_brings_has_a_second_too(open_pet, second):
    second.script(HELLO)
    pet = await open_pet(given=ScriptedModel([]), fallback_model=f"spare@{second.url}")
    assert (await pet.respond("hello", user="ana")).model == "spare"


async def test_a_name_alone_is_at_the_same_server_with_its_key(pet_at, first_way, server):
    pet = await pet_at(first_way, fallback_model="smaller", model_retries=0)
    server.script(QUOTA, answer("Hello."))
    reply, _ = await first_way.ask(pet, "hello", user="ana")
    assert reply.model == "smaller"
    first, then = server.asked
    assert (first.path, first.headers["authorization"]) == (then.path, then.headers["authorization"])


async def test_the_first_key_goes_to_no_other_server(pet_with, first_way, server, second):
    pet = await pet_with(first_way, fallback_key=None)
    server.script(Drop())
    second.script(HELLO)
    await first_way.ask(pet, "hello", user="ana")
    assert second.asked[0].headers["authorization"] == "Bearer none"


async def test_a_provider_that_needs_a_key_says_which_setting(pet_with, first_way):
    pet = await pet_with(first_way, fallback_model="small@mistral", fallback_key=None)
    with pytest.raises(SettingsError, match="set HACHI_FALLBACK_KEY"):
        await pet.respond("hello", user="ana")


def test_what_stands_after_the_at_is_an_address_or_a_provider():
    with pytest.raises(
        SettingsError, match="HACHI_FALLBACK_MODEL='big@opnai' cannot be read: after @ stands"
    ):
        Settings.load(fallback_model="big@opnai")
    for name in ("big", "@cf/meta/llama", "big@openai", "a@b@http://127.0.0.1:1/v1"):
        assert Settings.load(fallback_model=name).fallback_model == name


async def test_a_parameter_that_the_second_refuses_is_told(pet_with, some_way, server, second):
    pet = await pet_with(some_way)
    server.script(Drop())
    second.script(Fail(400, "no"))
    with pytest.raises((ModelRejected, BadInput), match="answered 400: no"):
        await some_way.ask(pet, "hello", user="ana")
