import pytest

from agent.turn.output.client_form import shaped
from agent.types.client import AnswerForm


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (' {"town":"Lyon"}\n', '{"town":"Lyon"}'),
        ('Here it is: {"town":"Lyon"}. More?', '{"town": "Lyon"}'),
        ('{"message": {"town":"Lyon"}, "memories": []}', '{"town": "Lyon"}'),
        ("{}\n", "{}"),
        ('{"message": "{}", "memories": []}', "{}"),
    ],
)
def test_a_client_that_wants_an_object_is_given_that_alone(written, message):
    form = AnswerForm("town", {"properties": {"town": {}}, "additionalProperties": False})
    assert shaped(written, form).message == message
