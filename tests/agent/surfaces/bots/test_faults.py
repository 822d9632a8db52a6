"""What a person hears when something went wrong."""

import pytest

from agent.errors import BadInput, HachiError, ModelRejected, ModelUnavailable
from agent.surfaces.bots.faults import BROKEN, told
from memory.errors import IndexUnavailable, NotFound, StoreUnavailable


@pytest.mark.parametrize(
    ("error", "begins"),
    [
        (ModelUnavailable("http://10.0.0.7 timed out"), "I can't think right now: the model does not answer"),
        (ModelRejected("key sk-123 refused"), "I can't think right now: the model refused"),
        (StoreUnavailable("/var/lib/x: the disk is full"), "I can't reach my memory"),
        (IndexUnavailable("10.0.0.8 is away"), "I can't reach my memory"),
        (HachiError("something at 10.0.0.9"), BROKEN),
        (ValueError("'token' at line 3"), BROKEN),
    ],
)
def test_it_is_told_in_short_and_found_in_the_log(
    error: Exception, begins: str, caplog: pytest.LogCaptureFixture
) -> None:
    text = told(error)
    assert text.startswith(begins)
    assert str(error) not in text
    trace_id = text.rpartition("(")[2].rstrip(")")
    assert any(trace_id in record.message and str(error) in record.message for record in caplog.records)


def test_a_turn_is_found_by_its_own_trace() -> None:
    error = ModelUnavailable("timed out")
    error.trace_id = "trace_abc"
    assert told(error).endswith("(trace_abc)")


def test_what_is_wrong_with_their_message_is_told_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    assert told(BadInput("the message is empty")) == "the message is empty"
    assert told(NotFound("no task '7'")) == "no task '7'"
    assert caplog.records == []
