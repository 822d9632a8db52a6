"""A talk that has outgrown the model's window goes on with less of it."""

import json
from typing import Any

import pytest
from scripted_server import Asked, Call, Raw, Say, answer

from agent.errors import ModelRejected
from agent.replay.replay import replay
from agent.tracing.render.trace import warnings

REFUSALS = {
    "llama.cpp": (
        400,
        {
            "error": {
                "code": 400,
                "message": "request (5230 tokens) exceeds the available context size (4096 tokens), try it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 5230,
                "n_ctx": 4096,
            }
        },
    ),
    "llama.cpp in 2025": (
        500,
        {"error": {"message": "the request exceeds the available context size. try increasing it"}},
    ),
    "vLLM": (
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you requested 5015 "
            "tokens (4015 in the messages, 1000 in the completion). Please reduce the length.",
        },
    ),
    "OpenAI": (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 8192 tokens. However, your messages "
                "resulted in 9010 tokens.",
                "code": "context_length_exceeded",
            }
        },
    ),
    "LM Studio": (
        400,
        {
            "error": "Trying to keep the first 5012 tokens when context the overflows. However, the model is "
            "loaded with context length of only 4096 tokens, which is not enough."
        },
    ),
    "Groq": (
        413,
        {"error": {"message": "Request too large for `x` on TPM: Limit 6000, Requested 7137"}},
    ),
    "Claude by a gateway": (
        400,
        {"error": {"message": "prompt is too long: 208310 tokens > 200000 maximum"}},
    ),
}
LONG = " ".join(f"On day {day} Rex swam {day * 7} metres in the lake, before breakfast." for day in range(14))


def refusing(name: str, most: int) -> Any:
    status, body = REFUSALS[name]

    def refuse(asked: Asked) -> Raw | None:
        size = len(json.dumps(asked.json.get("messages") or asked.json["input"]))
        size += len(asked.json.get("instructions") or "")
        return Raw(json.dumps(body).encode(), "application/json", status) if size > most else None

    return refuse


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_refusal_for_length_is_asked_again_with_less_history_and_remembered(
    pet_at, one_streamed, server, name
):
    pet = await pet_at(one_streamed, model_retries=0)
    for number in range(6):
        server.script(answer(f"{number}: {LONG}"))
        await pet.respond(f"{number}: {LONG}", user="ana")
    server.clear()
    refused = list[str]()
    refuse = refusing(name, 12_000)
    server.refuses = lambda asked: (found := refuse(asked)) and (refused.append(asked.text) or found)
    server.script(answer("I am here."), answer("And here."))
    reply, _ = await one_streamed.ask(pet, "are you there?", user="ana")
    assert reply.message == "I am here."
    assert 1 <= len([text for text in refused if "are you there?" in text]) <= 3
    assert "5: On day 0" in server.asked[0].text, "the newest is kept"
    await pet.components.recorder.flush()
    whole = await pet.traces.get_with_jobs(reply.trace_id, pet.clock())
    assert (await replay(pet, whole)).differences == ()
    assert (await one_streamed.ask(pet, "and now?", user="ana"))[0].message == "And here."
    assert not any("and now?" in text for text in refused), "what fits is remembered"


async def test_a_turn_refused_for_length_after_its_tools_replays_as_its_last_attempt(
    pet_at, one_streamed, server
):
    pet = await pet_at(one_streamed, model_retries=0)
    for number in range(3):
        server.script(answer(f"{number}: {LONG}"))
        await pet.respond(f"{number}: {LONG}", user="ana")
    refusals = [refusing("vLLM", 0)]
    server.refuses = lambda asked: refusals.pop()(asked) if asked.results and refusals else None
    note = Call("remember", {"content": "Ana has a cat", "subjects": ["ana"]})
    search = Call("search_memories", {"query": "swam"})
    server.script([note, search], search, answer("In the lake."))
    reply, _ = await one_streamed.ask(pet, "where did Rex swim?", user="ana")
    assert (reply.message, refusals) == ("In the lake.", [])
    await pet.components.recorder.flush()
    whole = await pet.traces.get_with_jobs(reply.trace_id, pet.clock())
    assert (await replay(pet, whole)).differences == ()


async def test_a_window_that_is_set_is_never_overrun(pet_at, one_streamed, server):
    pet = await pet_at(one_streamed, context_tokens=4_000)
    for number in range(8):
        server.script(answer(f"{number}: {LONG}"))
        await pet.respond(f"{number}: {LONG}", user="ana")
    assert max(len(json.dumps(asked.json)) for asked in server.asked) < 4_000 * 4


async def test_what_no_window_holds_is_told_with_the_setting_and_stops_nobody(pet_at, first_way, server):
    pet = await pet_at(first_way, model_retries=0)
    server.refuses = refusing("OpenAI", 10)
    for name in ("ana", "ben", "ana", "ben"):
        with pytest.raises(ModelRejected, match="HACHI_CONTEXT_TOKENS"):
            await pet.respond("hello", user=name)
    server.refuses = lambda _: None
    server.script(answer("Hello."))
    assert (await pet.respond("hello", user="ana")).message == "Hello."


async def test_a_narrow_window_gets_the_short_prompt_two_tools_and_plain_text(pet_at, one_streamed, server):
    pet = await pet_at(one_streamed, context_tokens=2_000, structured="schema")
    await pet.remember("Ana has a cat", user="ana")
    server.script(Call("search_memories", {"query": "cat"}), Say("You have a cat."))

    reply, shown = await one_streamed.ask(pet, "do I have a pet?", user="ana")

    assert (reply.message, shown) == ("You have a cat.", "You have a cat.")
    first, last = server.asked[-2:]
    assert first.tools.keys() == {"search_memories", "remember"}
    assert (first.form, last.form) == (None, None)
    assert len(first.system) < 400 * 4
    assert "JSON" not in first.text
    assert first.json["max_tokens"] == 2_000 // 6
    await pet.components.recorder.flush()
    whole = await pet.traces.get_with_jobs(reply.trace_id, pet.clock())
    assert whole.trace.summary.status == "ok"
    assert (await replay(pet, whole)).differences == ()
    assert any("short prompt" in line for line in warnings(whole.trace))


async def test_a_narrow_window_consolidates_by_a_short_prompt_and_keeps_what_it_says(
    pet_at, one_streamed, server
):
    pet = await pet_at(one_streamed, context_tokens=2_000, structured="schema", consolidate="model")
    server.script(Say("Bees!"))
    fact = {"text": "Ana keeps bees", "messages": [7], "importance": "medium", "tags": [], "ttl": None}
    server.script_consolidations(
        Say(json.dumps({"summary": "Bees.", "new_facts": [fact | {"replaces": None}]}))
    )
    reply, _ = await one_streamed.ask(pet, "I keep bees", user="ana")
    await pet.settle()
    [asked] = server.consolidations
    assert len(asked.text) < 400 * 4
    assert asked.form["json_schema"]["schema"]["properties"].keys() == {"summary", "new_facts"}
    assert [memory.content for memory in await pet.memories.list(user="ana")] == ["Ana keeps bees"]
    whole = await pet.traces.get_with_jobs(reply.trace_id, pet.clock())
    assert (await replay(pet, whole)).differences == ()
