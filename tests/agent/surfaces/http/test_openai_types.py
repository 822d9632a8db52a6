"""What a completion tells of the memories a turn used."""

import pytest

from agent.surfaces.http.openai_types import search_hits, usage_of, used_memories
from agent.tracing.trace import Usage
from agent.types import Reply, ToolCall


def call(result: str, name: str = "search_memories", *, ok: bool = True) -> ToolCall:
    return ToolCall(name, {}, ok, result)


@pytest.mark.parametrize(
    "result", ["no JSON", "[]", "null", '{"memories": []}', '{"memories": ["x", {"content": "no id"}]}', "{}"]
)
def test_a_result_that_brought_nothing_tells_of_nothing(result: str) -> None:
    assert list(search_hits(call(result))) == []


def test_only_what_searches_brought_counts_and_each_thing_once() -> None:
    found = '{"memories": [{"id": "1", "content": "Ana rows", "kind": "memory", "score": 0.5}]}'
    calls = (call(found), call(found), call(found, ok=False), call(found, "remember"))
    reply = Reply("Hm.", (), calls, "trace_1", "tiny", 1)
    assert used_memories(reply, ()) == [
        {"id": "1", "content": "Ana rows", "use": "used", "kind": "memory", "score": 0.5}
    ]


def test_usage_is_an_estimate_that_adds_up() -> None:
    assert usage_of("x" * 9, "") == {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3}
    uncounted = Reply("", (), (), "trace_1", "tiny", 1)
    assert usage_of("x" * 9, "", uncounted) == usage_of("x" * 9, "")


def test_usage_is_what_the_models_server_counted_where_it_did() -> None:
    reply = Reply("Hm.", (), (), "trace_1", "tiny", 2, usage=Usage(2_000, 30, 1_500))
    assert usage_of("x", "Hm.", reply) == {
        "prompt_tokens": 2_000,
        "completion_tokens": 30,
        "total_tokens": 2_030,
        "prompt_tokens_details": {"cached_tokens": 1_500},
    }
