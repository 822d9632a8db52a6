"""Two traces side by side."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.tracing.differences import differences, question_sections, sections, steps
from agent.tracing.trace import Summary, Trace
from memory.process.spans import Span

SYSTEM = "You are Hachi.\n\nBe brief.\n\nNow: Friday"
SECTIONS = [["persona", 14], ["rules", 9], ["setting", 11]]


def call(system: str = SYSTEM, said: str = "hello", output: Any = "hi", **more: Any) -> Span:
    request = {"system": system, "input": [{"role": "user", "content": said}], "tools": ["remember"]}
    request |= {"settings": {}} | more.pop("request", {})
    return Span("call", "tiny", data={"request": request, "output": [{"text": output}], **more})


def tool(result: str = "{}", arguments: str = "{}", name: str = "remember") -> Span:
    return Span("tool", name, data={"arguments": arguments, "result": result, "ok": True})


def trace(*spans: Span, sections: Any = SECTIONS, schema: Any = "a", **data: Any) -> Trace:
    began = datetime(2026, 11, 22, tzinfo=UTC)
    summary = Summary(id="trace_" + "0" * 32, kind="turn", started_at=began, user="ana")
    heard = {"incoming": {"text": "hello"}, "reply": {"message": "hi"}, "sections": sections}
    root = Span("turn", data=heard | data, spans=list(spans))
    return Trace(summary, root, {"tools": {"remember": {"parameters": schema}}}, redacted=False)


def where(before: Trace, after: Trace) -> list[str]:
    return [difference.where for difference in differences(before, after)]


@pytest.mark.parametrize(
    ("before", "after", "first"),
    [
        (trace(call()), trace(call(said="bye")), "call 1, message 1"),
        (trace(call()), trace(call(), schema="b"), "the arguments of remember"),
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
def test_each_thing_that_differs_is_named(before, after, first):
    assert where(before, after) == [first]


def test_what_happens_first_is_told_first():
    before = trace(call(), tool(), call(said="{}"), reply={"message": "one"})
    after = trace(call(), tool("[]"), call(said="[]"), reply={"message": "two"})
    assert where(before, after) == ["remember, result", "call 2, message 1", "reply"]


def test_a_call_that_failed_and_was_made_again_counts_once():
    failed = call()
    failed.error = "RateLimitError: 429"
    assert differences(trace(call()), trace(failed, call())) == []
    assert len(steps(trace(failed, call()))) == 1


def test_times_ids_and_the_name_of_the_model_make_no_difference():
    one, other = trace(call(), tool()), trace(call(usage={"input": 3}), tool())
    other = replace(other, summary=replace(other.summary, id="trace_" + "1" * 32, took=9.0))
    other.root.spans[0].name = "huge"
    for side, id in ((one, "a"), (other, "b")):
        side.root.spans[0].data["output"] = [{"id": id, "text": "hi"}]
    assert differences(one, other) == []
    bare = [Span("call", "tiny"), Span("tool", "remember", data={"ok": True}), Span("answer")]
    without_content = trace(*bare, incoming={}, reply={}, sections=[])
    assert differences(without_content, without_content) == []


def test_sections_of_the_system_message_are_named():
    [changed] = differences(trace(call()), trace(call(SYSTEM.replace("brief", "funny"))))
    assert (changed.where, changed.what) == ("call 1, system message, rules", "differs")
    assert (changed.before, changed.after) == ("Be brief.", "Be funny.")
    more = trace(call(f"{SYSTEM}\n\nAna skis."), sections=[*SECTIONS, ["person", 9]])
    [new], [gone] = differences(trace(call()), more), differences(more, trace(call()))
    assert (new.where, new.what, gone.what) == ("call 1, system message, person", "is new", "is gone")
    assert sections(trace(), f"{SYSTEM}\n\nAnswer now.")["more"] == "Answer now."
    unnamed = where(trace(call("a"), sections=[]), trace(call("b"), sections=[]))
    assert unnamed == ["call 1, system message, whole"]


def test_sections_of_the_questions_message_are_named_too():
    ends = {"question_at": 0, "question_sections": [["setting", 11], ["question", 5]]}
    one, other = (trace(call(said=f"Now: {day}\n\nhello"), **ends) for day in ("Friday", "Monday"))
    assert where(one, other) == ["call 1, message 1, setting"]
    assert question_sections(one, one.root.spans[0].data["request"]) == {
        "setting": "Now: Friday",
        "question": "hello",
    }


def test_another_order_of_steps_ends_the_comparison():
    found = differences(trace(call(), tool(), call()), trace(call(), call()))
    assert found[-1].what == "something else happens"
    assert (found[-1].before, found[-1].after) == ("remember is called", "the model is asked")
    [longer] = differences(trace(call()), trace(call(), tool()))
    assert (longer.where, longer.before, longer.after) == (
        "after call 1",
        "nothing more",
        "remember is called",
    )


def test_errors_and_answers_are_compared():
    failed = call(output=None)
    failed.error = "APITimeoutError: late"
    assert where(trace(call()), trace(failed))[-1] == "call 1, error"
    answers = [
        trace(Span("answer", data={"answer": {"message": "hi", "memories": memories}}))
        for memories in ([], [{"content": "Ana skis"}])
    ]
    assert where(*answers) == ["answer, memories"]
