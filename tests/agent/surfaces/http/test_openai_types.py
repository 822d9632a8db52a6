"""What a request says, and what an answer tells of the memories and tokens of a turn."""

import json
from dataclasses import replace
from typing import Any

import pytest

from agent.errors import BadInput
from agent.surfaces.http.openai_types import (
    ChatMessage,
    Completion,
    parse_messages,
    usage_of,
)
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


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def message(role: str, content: Any) -> ChatMessage:
    return ChatMessage.model_validate({"role": role, "content": content})


def test_the_last_user_message_is_answered_and_the_rest_is_context() -> None:
    parts = [{"type": "text", "text": "I have"}, {"type": "input_text", "text": "a boat"}]
    given = parse_messages(
        [
            message("system", "Answer like a pirate."),
            message("user", [{"type": "text", "text": "what is this?"}, PICTURE]),
            message("assistant", "A picture."),
            message("tool", "42"),
            message("developer", "Be brief."),
            message("user", parts),
            message("assistant", "Nice"),
        ]
    )
    assert given.text == "I have\na boat"
    assert given.earlier == (("user", "what is this?"), ("assistant", "A picture."))
    assert given.instructions == "Answer like a pirate.\n\nBe brief."
    assert not given.is_client_task


def test_only_text_can_be_answered() -> None:
    with pytest.raises(BadInput, match="only text can be read, and this holds 'image_url'"):
        parse_messages([message("user", [{"type": "text", "text": "what is this?"}, PICTURE])])
    with pytest.raises(BadInput, match="no message of the user"):
        parse_messages([message("system", "be nice")])


@pytest.mark.parametrize(
    ("text", "task"),
    [
        ("### Task:\nGenerate a title. <chat_history></chat_history>", True),
        ("### Task:\nGenerate a title.", False),
        ("What does '### Task: <chat_history>' mean?", False),
    ],
)
def test_what_open_webui_asks_for_itself_is_recognised(text: str, task: bool) -> None:
    assert parse_messages([message("user", text)]).is_client_task == task
    assert not parse_messages([message("user", "hello"), message("user", text)]).is_client_task


@pytest.mark.parametrize("include_usage", [False, True])
def test_a_stream_ends_with_memories_usage_if_wanted_and_done(include_usage: bool) -> None:
    *chunks, done = Completion("chatcmpl-1", 0, "hello", include_usage).end("Hi.")
    end, *usage = (json.loads(chunk) for chunk in chunks)
    assert done == "[DONE]"
    assert (end["choices"][0]["finish_reason"], end["memories"]) == ("stop", [])
    assert [(u["choices"], u["usage"]["completion_tokens"]) for u in usage] == [([], 1)] * include_usage
