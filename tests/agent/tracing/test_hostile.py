"""What people may have written harms neither a terminal nor a page."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agent.surfaces.cli.traces.lines import difference_lines, row
from agent.tracing.differences import differences
from agent.tracing.otlp.attributes import attributes_of
from agent.tracing.redact import Redaction
from agent.tracing.render.export import markdown, summary_json, trace_json
from agent.tracing.render.text import clipped, harmless, json_text, one_line, width
from agent.tracing.render.trace import SCREEN, trace_lines
from agent.tracing.serialization import Serializer, read_trace
from agent.tracing.trace import Summary, Trace, TraceWithJobs
from memory.process.spans import Recording, Span

EVIL = "<script>alert(1)</script>\x1b[2J\x1b]0;owned\x07\u202etxt.exe\u2066\ud83d\x9b31m``` ```` \r\n\tEND"
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


def hostile(said: str = EVIL) -> Trace:
    """A trace in which every text is hostile, and one is five million characters long."""
    huge = "<img src=x onerror=alert(2)>" + said + "A" * 5_000_000
    search = {
        "query": said,
        "audience": [said],
        "candidates": [{"id": said, "content": said, "score": 0.5, "lanes": {said: 1}, "left_out": said}],
        "found": [[said, 0.5]],
    }
    decision = {"action": said, "id": said, "content": said, "reason": said}
    tool = Span(
        "tool", said, 0.1, 0.1, data={"arguments": said, "ok": False, "result": huge, "traceback": said}
    )
    tool.spans = [
        Span("search", said, 0.1, 0.1, said, search),
        Span("decision", "", 0.1, 0.1, data={"decisions": [decision]}),
    ]
    message = {"role": said, "content": said}
    request = {"system": said, "input": [message], "tools": [said], "settings": {said: 1}}
    call = {"request": request, "output": [{"type": said, "arguments": said}], "usage": None}
    root = Span("turn", error=f"Oops: {said}", data={"incoming": {"text": said}, "reply": {"message": huge}})
    root.spans = [Span("call", said, 0.0, 0.1, said, call), tool, Span(said, said, 0.2)]
    recorded = Recording("trace_" + "ab" * 16, root)
    recorded.open = False
    texts = dict.fromkeys(("user", "conversation", "model", "said", "reply"), said)
    about = Summary(id=recorded.id, kind="turn", started_at=NOW, place="place:%3Cb%3E%1B", **texts)
    trace = read_trace(*Serializer("full", Redaction(), {}, "cli", said).serialize(recorded, about)[:2])
    return replace(trace, made_by={"versions": {"hachi": said}, "prompts": {said: said}})


@pytest.fixture(scope="module")
def evil():
    return hostile()


def test_on_a_terminal_nothing_is_done(evil):
    for lines in (trace_lines(evil, [evil]), trace_lines(evil, [evil], full=True)):
        for line in lines:
            assert not HARMFUL.search(str(line))
            assert "\n" not in str(line)
    assert len(trace_lines(evil)) <= SCREEN
    assert max(width(str(line)) for line in trace_lines(evil)) < 400
    assert any(r"\x1b[2J" in str(line) and r"\u202e" in str(line) for line in trace_lines(evil))
    assert not any(HARMFUL.search(cell) or "\n" in cell for cell in row(evil.summary, NOW))


def test_a_difference_is_told_harmlessly(evil):
    other = hostile("Tea, please")
    lines = [str(line) for line in difference_lines(evil.summary, other.summary, differences(evil, other))]
    assert len(lines) > 5
    assert not any(HARMFUL.search(line) for line in lines)


def test_json_can_be_printed_and_reads_as_it_was(evil):
    text = json_text(trace_json(TraceWithJobs(evil, [evil])))
    assert not HARMFUL.search(text)
    read = json.loads(text)
    assert read["root"]["data"]["incoming"]["text"] == EVIL
    assert read["afterwards"][0]["id"] == evil.id
    assert json.loads(json_text(summary_json(evil.summary)))["said"] == read["said"]


def test_a_fence_of_markdown_is_longer_than_any_inside(evil):
    text = harmless(markdown(TraceWithJobs(evil)))
    fences = [line for line in text.splitlines() if re.fullmatch(r"`{3,}(text)?", line)]
    assert [len(fence.removesuffix("text")) for fence in fences] == [5] * 4
    assert not HARMFUL.search(text)


def test_otlp_is_unicode(evil):
    for span in evil.spans():
        json.dumps(attributes_of(span, evil), ensure_ascii=False).encode()  # raises for half a character


SHOWN = {
    "tea\n  and\tcake": "tea and cake",
    "\x1b[31mred": r"\x1b[31mred",
    "a\u202eb": r"a\u202eb",
    "half \ud83d": r"half \ud83d",
    "👩\u200d🚀 goes": "👩\u200d🚀 goes",
    "שלום": "שלום",
}


def test_what_would_do_something_is_written_out_and_what_is_wide_is_cut_by_its_columns():
    assert {text: one_line(text) for text in SHOWN} == SHOWN
    assert harmless("one\r\ntwo\rthree") == "one\ntwo\\rthree"
    assert clipped("日本語の文章", 7) == "日本語…"
    assert clipped("short", 7) == "short"
    assert width(clipped("x" * 50, 7)) == 7
