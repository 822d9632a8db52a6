"""Records as lines of an answer, and what a person reads when something failed."""

import pytest

from agent.errors import BadInput, HachiError, ModelRejected, ModelUnavailable
from agent.surfaces.bots.answers import UNEXPECTED, describe_error, new_memories, shorten
from memory.errors import IndexUnavailable, NotFound, StoreUnavailable
from memory.records import Decision


def test_long_texts_are_cut_to_one_line() -> None:
    assert shorten("a\n b") == "a b"
    assert len(shorten("word " * 100)) == 300


def test_only_new_and_replacing_memories_have_a_receipt() -> None:
    decisions = [
        Decision("Ana likes tea", "add", "1", "new"),
        Decision("Ana moved to Lyon", "replace", "2", "it changed", target_id="0"),
        Decision("Ana likes tea!", "ignore", "1", "known word for word"),
        Decision("Ana likes green tea", "merge", "1", "the same"),
        Decision("hm", "ignore", None, "of no importance"),
    ]
    assert new_memories(decisions) == decisions[:2]


@pytest.mark.parametrize(
    ("error", "start"),
    [
        (ModelUnavailable("http://10.0.0.7 timed out"), "I can't think right now: the model does not answer"),
        (ModelRejected("key sk-123 refused"), "I can't think right now: the model refused"),
        (StoreUnavailable("/var/lib/x: the disk is full"), "I can't reach my memory"),
        (IndexUnavailable("10.0.0.8 is away"), "I can't reach my memory"),
        (HachiError("something at 10.0.0.9"), UNEXPECTED),
        (ValueError("'token' at line 3"), UNEXPECTED),
    ],
)
def test_the_message_has_no_details_and_the_log_has_them_under_its_id(error, start, caplog) -> None:
    text = describe_error(error)
    assert text.startswith(start)
    assert str(error) not in text
    trace_id = text.rpartition("(")[2].rstrip(")")
    assert any(trace_id in record.message and str(error) in record.message for record in caplog.records)


def test_a_turn_keeps_its_trace_id_and_bad_input_is_told_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    assert describe_error(BadInput("the message is empty")) == "the message is empty"
    assert describe_error(NotFound("no task '7'")) == "no task '7'"
    assert caplog.records == []
    error = ModelUnavailable("timed out")
    error.trace_id = "trace_abc"
    assert describe_error(error).endswith("(trace_abc)")
