"""What a small model wrote on a llama.cpp server is parsed and streamed alike, also where it is cut."""

import json
from pathlib import Path

import pytest

from agent.turn.output.parse import parse_answer
from agent.turn.output.streamed_text import MessageStream, ShownText

RECORDED = Path(__file__).parents[3] / "data" / "llamacpp_answers.jsonl"
ANSWERS = [json.loads(line) for line in RECORDED.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer["text"][:24])
def test_the_stream_is_the_reply_however_it_is_cut(answer):
    text = answer["text"]
    reply = parse_answer(text).message

    for size in (1, 7, len(text)):
        shown = list[str]()
        stream = ShownText(shown.append, MessageStream)
        for at in range(0, len(text), size):
            stream.feed(text[at : at + size])
        stream.end(reply)
        assert "".join(shown) == reply
    assert reply.strip()
    assert '"memories"' not in reply
    assert not reply.lstrip().startswith('{"message"')


def test_the_corpus_has_whole_and_cut_answers_with_a_schema_and_without():
    assert {(one["kind"], one["finish"]) for one in ANSWERS} >= {
        ("free", "length"),
        ("free", "stop"),
        ("schema", "stop"),
    }
