"""Spans: a tree of what happened, while somebody records it."""

from collections.abc import Callable
from typing import Any

import pytest

from memory.process.spans import (
    Recording,
    Span,
    describe_error,
    new_id,
    note,
    recording,
    span,
    traceback_of,
    unrecorded,
)


def shape(one: Span) -> Any:
    return (one.kind, [shape(inner) for inner in one.spans])


@pytest.fixture
def recorded() -> Recording:
    return Recording("trace_" + "0" * 32, Span("turn"))


def test_outside_a_recording_nothing_is_kept_and_every_id_is_new() -> None:
    with span("tool", query="tea") as here:
        note(found=1)
        assert here is None
    assert new_id() != new_id()


def test_spans_are_nested_as_their_blocks_are_but_for_one_without_nesting(recorded: Recording) -> None:
    with recording(recorded):
        with span("tool", "search"), span("search"):
            note(found=3)
        with span("answer"), unrecorded(), span("tool") as other:
            assert other is None
    assert shape(recorded.root) == ("turn", [("tool", [("search", [])]), ("answer", [])])
    tool, _ = recorded.root.spans
    [search] = tool.spans
    assert search.data == {"found": 3}
    assert 0 <= tool.at <= search.at
    assert search.at + search.took <= tool.at + tool.took <= recorded.root.took  # type: ignore[operator]
    assert not recorded.open

    beside = Recording("trace_" + "1" * 32, Span("turn"))
    with recording(beside):
        call = span("call", "tiny", nesting=False)
        call.__enter__()
        with span("tool"):
            pass
        call.__exit__(None, None, None)
    assert shape(beside.root) == ("turn", [("call", []), ("tool", [])])
    assert beside.root.spans[0].took is not None


def test_what_a_block_raises_is_noted_and_goes_on(recorded: Recording) -> None:
    with pytest.raises(ValueError, match="bad"), recording(recorded), span("tool"):
        raise ValueError("bad\nluck")
    assert recorded.root.spans[0].error == recorded.root.error == "ValueError: bad luck"
    assert recorded.root.spans[0].took is not None


def test_a_copy_stays_as_it_is_while_the_turn_goes_on(recorded: Recording) -> None:
    with recording(recorded), span("tool", "search"):
        copy = recorded.snapshot()
        note(ok=True)
        with span("search"):
            pass
    assert (copy.id, copy.open) == (recorded.id, True)
    assert shape(copy.root) == ("turn", [("tool", [])])
    assert copy.root.spans[0].data == {}
    assert copy.root.spans[0].took is None


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("told", [describe_error, traceback_of])
def test_an_error_that_cannot_be_shown_is_named_all_the_same(told: Callable[[BaseException], str]) -> None:
    assert "Unspeakable" in told(Unspeakable())
