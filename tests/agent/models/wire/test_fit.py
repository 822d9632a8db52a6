"""A server is asked for its models, window and slots, and what it tells is followed."""

import json
from typing import Any

import openai
import pytest
from scripted_server import answer

from agent.models.wire.fit import About, ask_about

LLAMA = {
    "/v1/models": {"data": [{"id": "/a/b.gguf", "owned_by": "llamacpp", "meta": {"n_ctx": 9_000}}]},
    "/props": {
        "total_slots": 3,
        "default_generation_settings": {"n_ctx": 4_096},
        "chat_template_caps": {"supports_tools": False},
        "modalities": {"vision": True, "audio": False},
    },
}
OTHERS: list[tuple[Any, str, About]] = [
    ({"id": "the/name", "owned_by": "vllm", "max_model_len": 8_192}, "the/name", About(window=8_192)),
    ({"id": "qwen3:latest", "owned_by": "library"}, "qwen3", About()),
    ({"id": "models/gemini-x"}, "gemini-x", About()),
    ({"id": "x/y", "context_length": 65_536}, "x/y", About(window=65_536)),
    ({"id": "small"}, "large", About(listed=False)),
]


async def _ask(server: Any, model: str) -> About:
    async with openai.AsyncOpenAI(base_url=server.url, api_key="x", max_retries=0) as client:
        return await ask_about(client, model, 5)


async def test_llama_cpp_tells_its_window_slots_and_template(server):
    server.tells = LLAMA
    about = await _ask(server, "any name")
    assert (about.listed, about.window, about.slots, about.tools) == (True, 4_096, 3, False)
    assert about.sees
    assert str(about) == "window 4,096 tokens, 3 slots, its template takes no tools"


@pytest.mark.parametrize(("entry", "model", "wanted"), OTHERS)
async def test_others_tell_it_in_their_lists_of_models(server, entry, model, wanted):
    server.tells = {"/v1/models": {"object": "list", "data": [entry]}}
    about = await _ask(server, model)
    assert (about.listed, about.window) == (wanted.listed, wanted.window)


async def test_a_url_without_an_api_is_told(server):
    server.tells = {"/v1/models": "<html>"}
    with pytest.raises(openai.APIError, match="does the URL lack /v1"):
        await _ask(server, "tiny")


async def test_what_the_server_tells_is_followed_from_the_first_turn_on(open_pet, server):
    server.tells = LLAMA
    pet = await open_pet(openai_base_url=server.url, model="tiny", provider="llamacpp", model_retries=0)
    long = " ".join(f"On day {day} Rex swam {day * 7} metres in the lake." for day in range(60))
    for _ in range(5):
        server.script(answer("Hm."))
        await pet.respond(long, user="ana")
    assert max(len(json.dumps(asked.json)) for asked in server.asked) < 4_096 * 4
    assert {asked.json["max_tokens"] for asked in server.asked} == {1_000}
    chosen = await pet.components.models.answering()
    assert chosen.slots._number == 3
    assert chosen.takes_pictures
    for asked in server.asked:  # its template takes no tools: none is sent, and each answer is bounded
        assert "tools" not in asked.json
        assert "maxLength" in json.dumps(asked.json["response_format"])
