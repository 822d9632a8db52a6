"""Which model is chosen, and what its faults mean to the person who set it up."""

import asyncio
from typing import Any

import httpx2
import openai
import pytest
from agents.exceptions import ModelBehaviorError, ModelTimeoutError
from agents.testing import ScriptedModel
from scripted_server import Call, Drop, Fail, Hang, Raw, answer

from agent.errors import ModelError, ModelRejected, ModelUnavailable
from agent.models.choice.choose import brought_model, choose_model
from agent.models.failures import LONGEST_WAIT, model_error
from hachi import Companion, Settings

KEY = "sk-test-4f1d2c"


async def _fault(pet: Companion, way: Any) -> ModelError:
    with pytest.raises(ModelError) as raised:
        await way.ask(pet, "are you there?", user="ana")
    return raised.value


async def test_a_call_that_fails_for_a_moment_is_made_again(pet_at, some_way, server, rows):
    pet = await pet_at(some_way)
    server.script(Drop(), answer("Here I am."))
    reply, shown = await some_way.ask(pet, "are you there?", user="ana")
    assert reply.message == shown == "Here I am."
    texts = [row["text"] for row in rows("SELECT text FROM messages ORDER BY seq")]
    assert texts == ["are you there?", "Here I am."]


async def test_three_requests_are_made_at_most(pet_at, one_streamed, server):
    pet = await pet_at(one_streamed)
    server.script(Fail(429), Fail(408), *[Fail(503)] * 3)
    fault = await _fault(pet, one_streamed)
    assert len(server.asked) == 3
    assert isinstance(fault, ModelUnavailable)
    assert "503" in str(fault)


async def test_a_server_that_wants_an_hour_is_not_waited_for(pet_at, one_streamed, server):
    pet = await pet_at(one_streamed)
    server.script(Fail(429, retry_after=str(LONGEST_WAIT + 1)))
    fault = await _fault(pet, one_streamed)
    assert len(server.asked) == 1
    assert isinstance(fault, ModelUnavailable)
    assert "429" in str(fault)


FAULTS = {
    "a wrong key": (Fail(401, f"wrong key {KEY}"), ModelRejected, "check OPENAI_API_KEY"),
    "a key without the right": (Fail(403), ModelRejected, "check OPENAI_API_KEY"),
    "an unknown model": (Fail(404), ModelRejected, "HACHI_MODEL"),
    "a request it does not like": (Fail(400, f"bad request by {KEY}"), ModelRejected, "bad request by …"),
    "a page of HTML": (Raw(b"<html>hello</html>"), ModelUnavailable, "OPENAI_BASE_URL"),
    "nothing": (Raw(b"", "application/json"), ModelUnavailable, "OPENAI_BASE_URL"),
    "half a line": (Raw(b'data: {"id": "x', "text/event-stream"), ModelUnavailable, "OPENAI_BASE_URL"),
    "another object": (Raw(b'{"detail": "ok"}', "application/json"), ModelUnavailable, "failed"),
    "strange events": (Raw(b'data: {"choices": 3}\n\n', "text/event-stream"), ModelUnavailable, "127.0.0.1"),
    "a line that breaks": (
        Drop(answer("Hello there, Ana").text, 2),
        ModelUnavailable,
        "was lost before its answer was whole",
    ),
}


async def test_each_fault_says_what_to_do(pet_at, some_way, server, rows, caplog, clock):
    pet = await pet_at(some_way, model_retries=0, model_timeout=20.0)
    for step, kind, told in FAULTS.values():
        clock.advance(hours=1)  # a server that failed is left alone for a while
        server.script(step)
        fault = await _fault(pet, some_way)
        assert isinstance(fault, kind), told
        assert told in str(fault)
        assert server.url in str(fault)
        for unsaid in ("\n", "Traceback", KEY):
            assert unsaid not in str(fault)
    assert KEY not in "".join(record.getMessage() for record in caplog.records if record.name[:5] == "hachi")
    assert {row["role"] for row in rows("SELECT role FROM messages")} == {"user"}


async def test_a_model_that_does_not_answer_is_given_up_in_time(pet_at, some_way, server):
    pet = await pet_at(some_way, model_timeout=0.3)
    server.script(Hang())
    fault = await _fault(pet, some_way)

    assert isinstance(fault, ModelUnavailable)
    assert "did not answer within 0.3 s (HACHI_MODEL_TIMEOUT)" in str(fault)
    assert len(server.asked) == 1
    await asyncio.wait_for(server.left.wait(), 60)


async def test_a_stream_that_stops_halfway_is_given_up_too(pet_at, one_streamed, server):
    pet = await pet_at(one_streamed, model_timeout=0.3)
    server.script(Hang(answer("Hello there, Ana, how are you").text, 4))
    fault = await _fault(pet, one_streamed)
    assert "HACHI_MODEL_TIMEOUT" in str(fault)
    await asyncio.wait_for(server.left.wait(), 60)


async def test_a_fault_in_the_middle_of_a_turn_keeps_what_was_remembered(pet_at, some_way, server):
    pet = await pet_at(some_way, model_retries=0)
    server.script(
        Call("remember", {"content": "Ana plays the cello", "subjects": [], "ttl": None}), Fail(500)
    )
    await _fault(pet, some_way)
    assert [memory.content for memory in await pet.memories.list(user="ana")] == ["Ana plays the cello"]


REQUEST = httpx2.Request("POST", "http://x")
HERE = {"openai_base_url": "http://ana:pa55@127.0.0.1:1/v1", "model": "tiny"}
OWN = Settings(**HERE)
TOO_LONG = openai.BadRequestError("too long\nmore", response=httpx2.Response(400, request=REQUEST), body=None)


@pytest.mark.parametrize(
    ("error", "settings", "told"),
    [
        (ModelTimeoutError(3), Settings(openai_api_key=KEY), "the model at OpenAI did not answer"),
        (
            openai.APITimeoutError(request=REQUEST),
            Settings(openai_api_key=KEY),
            "the model at OpenAI did not",
        ),
        (openai.OpenAIError("\n  \n"), Settings(openai_api_key=KEY), "the model at OpenAI failed"),
        (ModelBehaviorError("two\nlines"), Settings(openai_api_key=KEY), "the model at OpenAI failed: two"),
        (openai.APIConnectionError(request=REQUEST), OWN, "the model server at http://127.0.0.1:1/v1 cannot"),
        (TOO_LONG, OWN, "http://127.0.0.1:1/v1 answered 400: too long"),
    ],
)
def test_faults_of_the_libraries_are_told_in_one_line_without_a_password(error, settings, told):
    fault = str(model_error(error, settings))
    assert fault.startswith(told)
    assert "\n" not in fault
    assert model_error(KeyError("ours"), settings) is None, "no fault of the model"


@pytest.mark.parametrize(
    ("settings", "model", "api", "structured"),
    [
        ({"openai_api_key": KEY}, "gpt-5-mini", "responses", "schema"),
        ({"openai_api_key": KEY, "api": "chat"}, "gpt-5-mini", "chat", "schema"),
        (HERE, "tiny", "chat", "none"),
        (HERE | {"api": "responses"}, "tiny", "responses", "none"),
    ],
)
async def test_the_settings_choose_the_model_its_api_and_form(settings, model, api, structured):
    chosen = choose_model(Settings(**settings))
    assert (chosen.name, chosen.model.inner.api, chosen.structured) == (model, api, structured)
    known = "openai_api_key" in settings or settings.get("api") == "responses"
    assert chosen.settings.store is (False if known else None)
    assert chosen.client is not None
    assert chosen.client.max_retries == 0, "the runner retries"
    await chosen.close()
    assert chosen.client.is_closed()


async def test_the_stand_in_and_a_brought_model_have_no_client_to_close():
    for chosen in (choose_model(Settings()), brought_model(ScriptedModel())):
        assert chosen.client is None
        await chosen.close()
