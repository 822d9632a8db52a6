"""What a client asks of the model."""

import httpx2
import openai
import pytest

from agent.turn.client.parameters import refused_parameter, shown_names
from agent.types.client import Sampling


def test_a_tool_with_a_name_that_is_not_ours_keeps_it():
    assert shown_names(["weather", "weather"], {"remember"}) == {"weather": "weather"}


def test_a_tool_with_a_name_of_ours_gets_one_that_nothing_else_has():
    ours = {"remember", "client3_remember"}
    theirs = ["client_remember", "remember", "client2_remember"]
    shown = shown_names(theirs, ours)
    assert shown == {name: name for name in theirs} | {"remember": "client4_remember"}
    assert shown_names(reversed(theirs), ours) == shown


@pytest.mark.parametrize(
    ("words", "param", "named"),
    [
        ("Unsupported value: 'think' does not support this.", None, True),
        ("body.think: extra inputs are not permitted", None, True),
        ("Unknown parameter: think", None, True),
        ("it is wrong", "think", True),
        ("please think before sending pictures", None, False),
        ("re-think this, overthinkers too", None, False),
    ],
)
def test_a_refusal_is_blamed_on_a_parameter_only_where_the_provider_names_it(words, param, named):
    request = httpx2.Request("POST", "http://127.0.0.1/")
    body = {"message": words, "param": param}
    error = openai.BadRequestError(words, response=httpx2.Response(400, request=request), body=body)
    assert bool(refused_parameter(error, Sampling(others={"think": True}))) is named
