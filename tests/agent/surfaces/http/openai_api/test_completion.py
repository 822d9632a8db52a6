"""What a request says, and what an answer tells of the memories and tokens of a turn."""

from dataclasses import replace

from agent.surfaces.http.openai_api.completion import usage_of
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
