"""Two traces side by side."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.tracing.compare import differences, sections, steps
from agent.tracing.trace import Summary, Trace, Usage
from memory.spans import Span

SYSTEM = "You are Hachi.\n\nBe brief.\n\nNow: Friday"
SECTIONS = [["persona", 14], ["rules", 9], ["setting", 11]]


def call(system: str = SYSTEM, said: str = "hello", output: Any = "hi", **more: Any) -> Span:
    request = {
        "system": system,
        "input": [{"role": "user", "content": said}],
        "tools": ["remember"],
        "settings": {},
    }
    return Span(
        "call",
        "tiny",
        data={"request": request | more.pop("request", {}), "output": [{"text": output}], **more},
    )


def tool(result: str = "{}", arguments: str = "{}", name: str = "remember") -> Span:
    return Span("tool", name, data={"arguments": arguments, "result": result, "ok": True})


def trace(*spans: Span, sections: Any = SECTIONS, schema: Any = "a", **data: Any) -> Trace:
    summary = Summary(
        id="trace_" + "0" * 32,
        kind="turn",
        turn_id=None,
        status="ok",
        started_at=datetime(2026, 11, 22, tzinfo=UTC),
        took=1.0,
        user="ana",
        place="",
        conversation="dm:ana",
        surface="cli",
        model="tiny",
        said="hello",
        reply="hi",
        error=None,
        calls=1,
        tools=(),
        usage=Usage(),
    )
    heard = {"incoming": {"text": "hello"}, "reply": {"message": "hi"}, "sections": sections}
    root = Span("turn", data=heard | data, spans=list(spans))
    return Trace(summary, root, {"tools": {"remember": {"parameters": schema}}}, redacted=False)


def where(before: Trace, after: Trace) -> list[str]:
    return [difference.where for difference in differences(before, after)]


def test_times_and_ids_of_traces_make_no_difference() -> None:
    one, other = trace(call(), tool()), trace(call(usage={"input": 3}), tool())
    other = replace(other, summary=replace(other.summary, id="trace_" + "1" * 32, took=9.0))

    assert differences(one, other) == []


def test_a_section_of_the_system_message_is_named() -> None:
    changed = trace(
        call(SYSTEM.replace("brief", "funny")), sections=[["persona", 14], ["rules", 9], ["setting", 11]]
    )

    [found] = differences(trace(call()), changed)

    assert (found.where, found.what) == ("call 1, system message, rules", "differs")
    assert (found.before, found.after) == ("Be brief.", "Be funny.")


def test_a_section_that_came_or_went_is_said_so() -> None:
    more = trace(call(f"{SYSTEM}\n\nAna skis."), sections=[*SECTIONS, ["person", 9]])

    [new] = differences(trace(call()), more)
    [gone] = differences(more, trace(call()))

    assert (new.where, new.what) == ("call 1, system message, person", "is new")
    assert gone.what == "is gone"


def test_what_is_added_for_the_last_call_is_a_section_too() -> None:
    assert sections(trace(), f"{SYSTEM}\n\nAnswer now.")["last call"] == "Answer now."


def test_where_nothing_tells_the_sections_the_message_is_compared_whole() -> None:
    assert where(trace(call("a"), sections=[]), trace(call("b"), sections=[])) == [
        "call 1, system message, whole"
    ]


@pytest.mark.parametrize(
    ("before", "after", "first"),
    [
        (trace(call()), trace(call(said="bye")), "call 1, message 1"),
        (trace(call()), trace(call(), schema="b"), "call 1, tools, schema of remember"),
        (trace(call()), trace(call(request={"tools": []})), "call 1, tools"),
        (trace(call()), trace(call(request={"settings": {"temperature": 1}})), "call 1, settings"),
        (trace(call()), trace(call(output="ho")), "call 1, what it wrote"),
        (trace(call(), tool()), trace(call(), tool(arguments="[]")), "remember, arguments"),
        (trace(call(), tool()), trace(call(), tool(result="[]")), "remember, result"),
        (trace(), trace(reply={"message": "ho"}), "reply"),
        (trace(), trace(incoming={"text": "bye"}), "what was said"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_thing_that_differs_is_named(before: Trace, after: Trace, first: str) -> None:
    assert where(before, after) == [first]


def test_what_happens_first_is_told_first() -> None:
    before = trace(call(), tool(), call(said="{}"), reply={"message": "one"})
    after = trace(call(), tool("[]"), call(said="[]"), reply={"message": "two"})

    assert where(before, after) == ["remember, result", "call 2, message 1", "reply"]


def test_another_order_of_things_ends_the_comparison() -> None:
    found = differences(trace(call(), tool(), call()), trace(call(), call()))

    assert found[-1].what == "something else happens"
    assert (found[-1].before, found[-1].after) == ("remember is called", "the model is asked")


def test_more_of_it_on_one_side_is_a_difference() -> None:
    [found] = differences(trace(call()), trace(call(), tool()))

    assert (found.before, found.after) == ("nothing more", "remember is called")


def test_another_model_that_is_asked_the_same_is_no_difference() -> None:
    other = call()
    other.name = "huge"

    assert differences(trace(call()), trace(other)) == []


def test_a_call_that_failed_and_was_made_again_counts_once() -> None:
    failed = call()
    failed.error = "RateLimitError: 429"

    assert differences(trace(call()), trace(failed, call())) == []
    assert len(steps(trace(failed, call()))) == 1


def test_a_call_that_failed_for_good_is_a_difference() -> None:
    failed = call(output=None)
    failed.error = "APITimeoutError: late"

    assert where(trace(call()), trace(failed))[-1] == "call 1, error"


def test_what_an_answer_was_read_as_is_compared() -> None:
    one = trace(Span("answer", data={"answer": {"message": "hi", "memories": []}}))
    other = trace(Span("answer", data={"answer": {"message": "hi", "memories": [{"content": "Ana skis"}]}}))

    assert where(one, other) == ["answer, memories"]


def test_ids_that_a_server_gave_say_nothing() -> None:
    one, other = call(), call()
    one.data["output"], other.data["output"] = [{"id": "a", "text": "hi"}], [{"id": "b", "text": "hi"}]

    assert differences(trace(one), trace(other)) == []


def test_traces_without_content_are_compared_by_what_was_done() -> None:
    bare = [Span("call", "tiny"), Span("tool", "remember", data={"ok": True}), Span("answer")]
    one = trace(*bare, incoming={}, reply={}, sections=[])

    assert differences(one, one) == []
