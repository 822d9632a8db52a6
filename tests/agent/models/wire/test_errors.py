"""What a refusal means is told by its status, codes and shape, and by few words, whoever serves the model."""

import json
from pathlib import Path

import httpx2
import openai
import pytest

from agent.models.wire.errors import TooLong, no_money, too_long

LINES = (Path(__file__).parents[3] / "data" / "refusals.jsonl").read_text("utf-8").splitlines()


def error_of(status: int, body: object) -> openai.APIStatusError:
    answered = httpx2.Response(status, json=body, request=httpx2.Request("POST", "http://127.0.0.1/v1"))
    return openai.AsyncOpenAI(api_key="none")._make_status_error_from_response(answered)


@pytest.mark.parametrize("line", LINES)
def test_a_refusal_is_for_length_for_money_or_for_neither(line: str) -> None:
    case = json.loads(line)
    error = error_of(case["status"], case["body"])
    assert (too_long(error), no_money(error)) == (case["means"] == "length", case["means"] == "money")


def test_a_refusal_tells_which_part_of_the_request_the_server_takes() -> None:
    words = "maximum context length is 4,096 tokens, you requested 5015 tokens (4015 in the messages)"
    assert TooLong(error_of(400, {"message": words})).share == pytest.approx(4096 / 5015)
    assert TooLong(error_of(400, {"message": "The prompt is too long"})).share is None
