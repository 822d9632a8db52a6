"""Recorded trees as bytes: what cannot be written, what is too long, and what is not kept."""

import zlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import BadInput
from agent.tracing.redact import REDACTED, Redaction
from agent.tracing.serialization import Serializer, read_trace
from agent.tracing.trace import Summary, Trace
from memory.process.spans import Recording, Span

ABOUT = Summary(id="trace_" + "0" * 32, kind="turn", started_at=datetime(2026, 11, 21, tzinfo=UTC), user="u1")


def written(root: Span, content: Any = "redacted", **about: Any) -> tuple[Summary, bytes]:
    recorded = Recording(ABOUT.id, root)
    recorded.open, root.took = False, 1.0
    serializer = Serializer(content, Redaction(), {"tools": {"remember": {}}}, "python", "host:1")
    return serializer.serialize(recorded, replace(ABOUT, **about))[:2]


def read(root: Span, **about: Any) -> Trace:
    return read_trace(*written(root, **about))


class Odd:
    def __str__(self) -> str:
        raise RuntimeError("no words")


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = {"in": [value]}
    return value


def circle() -> Any:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


@pytest.mark.parametrize("value", [Odd(), deep(20_000), circle()], ids=["odd", "deep", "circle"])
def test_of_what_cannot_be_written_the_content_is_lost_and_nothing_else(value):
    trace = read(Span("turn", spans=[Span("call", "tiny", data={"value": value})]), said="hello")
    assert trace.root.data["lost"]
    assert [one.kind for one in trace.root.spans] == ["call"]
    assert trace.summary.said == ""


def test_odd_values_are_written_as_far_as_they_can_be():
    values = {
        "surrogate": ("half \ud83d of a pair", "half \ud83d of a pair"),
        "bytes": (b"\xff\xfe", "b'\\xff\\xfe'"),
        "keys": ({3: "three", "set": {2, 1}}, {"3": "three", "set": [1, 2]}),
        "nested": (deep(400), deep(400)),
        "usage": ({"input": 10**30, "output": "many", "cached": -3},) * 2,
    }
    call = Span("call", "tiny", data={name: given for name, (given, _) in values.items()})
    trace = read(Span("turn", spans=[call]), said="half \ud83d")
    assert trace.root.spans[0].data == {name: value for name, (_, value) in values.items()}
    assert trace.summary.said == "half \N{REPLACEMENT CHARACTER}"
    usage = trace.summary.usage
    assert (usage.input, usage.output, usage.cached) == (2**31 - 1, 0, 0), "what a column holds"


def test_long_texts_are_cut_and_no_row_shows_part_of_a_secret():
    trace = read(Span("turn", data={"value": ["y" * 5_000_000]}))
    assert trace.root.data["value"][0].startswith("y" * 99_960 + " … (4,900,040 more")
    assert trace.redacted
    said = "x" * 190 + " sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv"
    assert written(Span("turn"), said=said)[0].said == ("x" * 190 + f" {REDACTED}")[:200]


@pytest.mark.parametrize("body", [b"no body", zlib.compress(b"[]"), zlib.compress(b'{"root": {"odd": 1}}')])
def test_a_body_that_cannot_be_read_is_refused(body):
    with pytest.raises(BadInput, match="cannot be read"):
        read_trace(ABOUT, body)


words = st.text("qwzx", min_size=4, max_size=8)
TEXTS = "text query result arguments system answer candidates decisions reply scene".split()


@given(st.lists(words, min_size=6, max_size=6), st.sampled_from(TEXTS), st.sampled_from(TEXTS))
def test_without_content_no_word_of_what_was_said_is_written(said, name, other):
    search = Span("search", data={name: [said[0]], "found": [("5c8a", 0.5)]}, error=f"ValueError: {said[1]}")
    tool = Span("tool", said[2], data={other: {"deep": said[3]}, "ok": False, "traceback": said[1]})
    tool.spans.append(search)
    root = Span("turn", data={name: said[4]}, spans=[tool], error=f"ModelError: {said[5]}")
    summary, body = written(root, "none", said=said[0], reply=said[1])
    whole = f"{summary} {zlib.decompress(body).decode()}"
    assert not [word for word in said if word in whole]
    trace = read_trace(summary, body)
    assert [span.kind for span in trace.spans()] == ["turn", "tool", "search"]
    assert (summary.status, summary.error, summary.tools) == ("error", "ModelError", ("unknown!",))
