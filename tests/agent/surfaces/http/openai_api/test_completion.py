"""What a request says, and what an answer tells of the memories and tokens of a turn."""

import json
from dataclasses import replace

import pytest

from agent.surfaces.http.openai_api.completion import Completion, usage_of
from agent.types import Reply, Usage


def test_usage_is_what_the_models_server_counted_otherwise_an_estimate() -> None:
    assert usage_of("x" * 9, "") == {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3}
    uncounted = Reply("", (), (), "trace_1", "tiny", 1)
    assert usage_of("x" * 9, "", uncounted) == usage_of("x" * 9, "")
    assert usage_of("x", "Hm.", replace(uncounted, usage=Usage(2_000, 30, 1_500))) == {
        "prompt_tokens": 2_000,
        "completion_tokens": 30,
        "total_tokens": 2_030,
        "prompt_tokens_details": {"cached_tokens": 1_500},
    }


@pytest.mark.parametrize("include_usage", [False, True])
def test_a_stream_ends_with_memories_usage_if_wanted_and_done(include_usage: bool) -> None:
    *chunks, done = Completion("chatcmpl-1", 0, include_usage, "hello").end("Hi.")
    end, *usage = (json.loads(chunk) for chunk in chunks)
    assert done == "[DONE]"
    assert (end["choices"][0]["finish_reason"], end["memories"]) == ("stop", [])
    assert [(u["choices"], u["usage"]["completion_tokens"]) for u in usage] == [([], 1)] * include_usage
