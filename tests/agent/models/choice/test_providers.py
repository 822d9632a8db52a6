"""Whole turns with servers that take only the fields that their documentation lists."""

import pytest
from scripted_server import Call, answer

from agent.errors import SettingsError
from agent.models.choice.choose import choose_model
from agent.models.choice.providers import PROVIDERS, api_of, base_url_of, provider_of, structured_of
from hachi import Companion, Settings

COMMON = {"model", "messages", "tools", "tool_choice", "stream", "temperature", "top_p", "max_tokens", "stop"}
JSON = {"response_format", "response_format.type", "response_format.json_schema"}
COUNTED = {"stream_options", "stream_options.include_usage"}
DOCUMENTED = {
    "mistral": COMMON | JSON | {"random_seed", "parallel_tool_calls", "safe_prompt", "metadata"},
    "ollama": COMMON | JSON | COUNTED | {"seed", "reasoning_effort"},
    "vllm": COMMON | JSON | COUNTED | {"seed", "parallel_tool_calls", "store"},
    "llamacpp": COMMON | JSON | COUNTED | {"seed", "parallel_tool_calls"},
    "lmstudio": COMMON | JSON | COUNTED | {"seed", "logit_bias"},
    "openrouter": COMMON | JSON | COUNTED | {"seed", "parallel_tool_calls", "usage"},
    "openai": {
        "model",
        "input",
        "instructions",
        "include",
        "tools",
        "tool_choice",
        "stream",
        "store",
        "text",
    },
}


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_turn_sends_each_provider_only_what_it_takes(open_pet, server, name):
    server.takes = DOCUMENTED[name]
    pet: Companion = await open_pet(
        provider=name,
        openai_base_url=server.url,
        openai_api_key="sk-1",
        model="tiny",
        model_retries=0,
        max_turns=2,
    )
    for _ in range(2):
        server.script(Call("search_memories", {"query": "tea"}), answer("Green tea."))
    assert (await pet.respond("which tea?", user="ana")).message == "Green tea."
    stream = pet.stream("which tea?", user="ana")
    assert "".join([piece async for piece in stream]) == "Green tea."

    path = "/v1/responses" if name == "openai" else "/v1/chat/completions"
    assert [asked.path for asked in server.asked] == [path] * 4
    with_tools, last = [(asked.form or {}).get("type") for asked in server.asked[:2]]
    assert with_tools == ("json_schema" if name == "openai" else None), "a schema suppresses their tools"
    assert last == (None if name == "openrouter" else "json_schema")


@pytest.mark.parametrize(
    ("setting", "field"),
    [({"structured": "schema"}, "response_format"), ({}, "stream_options")],
)
async def test_a_field_that_a_server_refuses_is_left_out_from_then_on(open_pet, server, setting, field):
    server.takes = COMMON
    pet: Companion = await open_pet(openai_base_url=server.url, model="tiny", model_retries=0, **setting)
    server.script(*[answer("Green tea.")] * 4)  # a request that is refused takes a step, too
    for _ in range(2):
        stream = pet.stream("tea?", user="ana")
        assert "".join([piece async for piece in stream]) == "Green tea."
    assert field in server.asked[0].json
    assert field not in server.asked[-1].json
    assert len(server.asked) <= 4


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_openai_and_every_server_of_responses_is_asked_to_store_nothing(api):
    for name in PROVIDERS:
        chosen = choose_model(Settings(provider=name, openai_api_key="sk-1", model="tiny", api=api))
        assert chosen.settings.store is (False if api == "responses" or name == "openai" else None)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (None, "openai"),
        ("https://api.mistral.ai/v1/", "mistral"),
        ("http://localhost:11434/v1", "ollama"),
        ("http://127.0.0.1:8000/v1", "vllm"),
        ("http://127.0.0.1:8080/v1", "llamacpp"),
        ("http://127.0.0.1:1234/v1", "lmstudio"),
        ("https://openrouter.ai/api/v1", "openrouter"),
    ],
)
def test_the_base_url_tells_the_provider(url, name):
    assert provider_of(Settings(openai_base_url=url)) == PROVIDERS[name]


def test_an_unknown_server_is_asked_by_chat_completions_and_the_prompt_alone():
    settings = Settings(openai_base_url="http://models.example:9/v1")
    assert (api_of(settings), structured_of(settings)) == ("chat", "none")
    own = settings.model_copy(update={"api": "responses", "structured": "object"})
    assert (api_of(own), structured_of(own)) == ("responses", "object")


def test_a_provider_is_where_it_usually_is_unless_the_base_url_says_otherwise():
    assert base_url_of(Settings(provider="ollama")) == "http://127.0.0.1:11434/v1"
    assert base_url_of(Settings(provider="ollama", openai_base_url="http://box:1/v1")) == "http://box:1/v1"
    assert base_url_of(Settings(provider="openai")) is None


def test_a_provider_that_needs_a_key_says_so():
    with pytest.raises(SettingsError, match=r"api\.mistral\.ai/v1 needs a key: set OPENAI_API_KEY"):
        choose_model(Settings(provider="mistral", model="tiny"))
