"""What a client asks of the model."""

import pytest

from agent.turn.client.options import shaped, shown_names
from agent.types.client import AnswerForm


def test_a_tool_with_a_name_that_is_not_ours_keeps_it():
    assert shown_names(["weather", "weather"], {"remember"}) == {"weather": "weather"}


def test_a_tool_with_a_name_of_ours_gets_one_that_nothing_else_has():
    ours = {"remember", "client3_remember"}
    theirs = ["client_remember", "remember", "client2_remember"]
    shown = shown_names(theirs, ours)
    assert shown == {name: name for name in theirs} | {"remember": "client4_remember"}
    assert shown_names(reversed(theirs), ours) == shown


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (' {"town":"Lyon"}\n', '{"town":"Lyon"}'),
        ('Here it is: {"town":"Lyon"}. More?', '{"town": "Lyon"}'),
        ('{"message": {"town":"Lyon"}, "memories": []}', '{"town": "Lyon"}'),
    ],
)
def test_a_client_that_wants_an_object_is_given_that_alone(written, message):
    assert shaped(written, AnswerForm("town", {"required": ["town"]})).message == message
