"""A trace in OpenTelemetry's words."""

import json
from typing import Any

import pytest

from agent.tracing.conventions import attributes_of, error_type, name_of, operation_of, pseudonym
from memory.spans import Span

USAGE = {"input": 120, "output": 9, "cached": 100}
ASKED = [
    {"role": "user", "content": "cats?"},
    {"type": "function_call", "call_id": "c1", "name": "search_memories", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "none"},
]
SAID = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]}]


@pytest.mark.parametrize(
    ("span", "name"),
    [
        (Span("turn"), "invoke_agent hachi"),
        (Span("call", "gpt-5-mini"), "chat gpt-5-mini"),
        (Span("tool", "remember"), "execute_tool remember"),
        (Span("search"), "search_memory memories"),
        (Span("documents"), "retrieval documents"),
        (Span("look_back"), "look_back"),
    ],
)
def test_each_kind_of_span_has_its_name(span: Span, name: str) -> None:
    assert name_of(span) == name


@pytest.mark.parametrize(
    ("actions", "operation"),
    [
        (["add"], "create_memory"),
        (["add", "add"], "create_memory"),
        (["replace", "merge"], "update_memory"),
        (["add", "replace"], "upsert_memory"),
        (["ignore"], "upsert_memory"),
        ([], "upsert_memory"),
    ],
)
def test_a_decision_is_named_by_what_was_decided(actions: list[str], operation: str) -> None:
    decisions = [{"action": action, "id": "m1", "content": "tea"} for action in actions]
    assert operation_of(Span("decision", data={"decisions": decisions})) == operation


def test_a_call_has_its_model_tokens_and_texts() -> None:
    request = {"system": "Be kind.", "input": ASKED, "settings": {"temperature": 0.2, "extra_args": {}}}
    span = Span("call", "gpt", data={"request": request, "output": SAID, "usage": USAGE, "first": 0.5})
    found = attributes_of(span)
    assert found["gen_ai.operation.name"] == "chat"
    assert found["gen_ai.request.model"] == "gpt"
    assert found["gen_ai.usage.input_tokens"] == 120
    assert found["gen_ai.usage.cache_read.input_tokens"] == 100
    assert found["gen_ai.request.temperature"] == 0.2
    assert found["gen_ai.response.time_to_first_chunk"] == 0.5
    assert read(found, "gen_ai.system_instructions") == [{"type": "text", "content": "Be kind."}]
    assert [message["role"] for message in read(found, "gen_ai.input.messages")] == [
        "user",
        "assistant",
        "tool",
    ]
    [answer] = read(found, "gen_ai.output.messages")
    assert answer["parts"] == [{"type": "text", "content": "Yes."}]


def test_without_content_no_text_is_in_it() -> None:
    span = Span("call", "gpt", data={"request": {"system": "secret", "input": "secret"}, "output": SAID})
    tool = Span("tool", "remember", data={"arguments": "secret", "result": "secret", "call_id": "c1"})
    search = Span("search", data={"query": "secret", "found": [["m1", 0.5]], "limit": 10})
    for one in (span, tool, search):
        assert "secret" not in str(attributes_of(one, content=False))
        assert "secret" in str(attributes_of(one))
    assert attributes_of(search, content=False)["gen_ai.memory.record.count"] == 1


def test_what_was_found_is_listed_with_its_score() -> None:
    candidates = [{"id": "m1", "content": "Ana skis"}, {"id": "m2", "content": "no", "left_out": "far"}]
    span = Span("search", data={"query": "ski", "candidates": candidates, "found": [["m1", 0.5]]})
    found = attributes_of(span)
    assert read(found, "gen_ai.memory.records") == [{"id": "m1", "score": 0.5, "content": "Ana skis"}]


@pytest.mark.parametrize("kind", ["turn", "call", "tool", "search", "documents", "decision", "answer", "new"])
def test_a_span_of_which_nothing_is_kept_has_attributes_all_the_same(kind: str) -> None:
    found = attributes_of(Span(kind))
    assert found["gen_ai.operation.name"]
    assert all(isinstance(value, str | int | float | bool | list) for value in found.values())


def test_an_error_has_the_name_of_its_exception() -> None:
    assert error_type(Span("call", error="TimeoutError: no word")) == "TimeoutError"
    assert error_type(Span("tool", data={"ok": False})) == "tool_error"
    assert error_type(Span("tool", data={"ok": True})) is None


def test_a_person_is_a_pseudonym() -> None:
    assert pseudonym("ana") == pseudonym("ana") != pseudonym("ben")
    assert "ana" not in pseudonym("ana")


def read(found: dict[str, Any], name: str) -> Any:
    return json.loads(found[name])
