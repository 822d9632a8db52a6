import json
from pathlib import Path

import pytest
from effort import steps_of
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.turn.output.parse import parse_answer
from agent.turn.output.streamed_text import CERTAIN, PATIENCE, MessageStream

LONG = "The ferry leaves at nine and the market opens at ten, so there is time for a coffee by the harbour. "
REPEATED = ["{", '"', "`", "<", "[", "\\", " ", "a", '"a":', "<think>", '{"a":', '\\"{', "é\\n\\ud83c\\udf66"]


def streamed(raw: str, size: int = 1) -> tuple[str, str]:
    """What was shown while it came in pieces of `size`, and the final message."""
    stream = MessageStream()
    shown = "".join([stream.feed(raw[at : at + size]) for at in range(0, len(raw), size)])
    assert shown == stream.shown
    return shown, parse_answer(raw).message


STREAMED = (Path(__file__).parents[3] / "data" / "streamed_outputs.jsonl").read_text("utf-8").splitlines()


def test_a_message_is_shown_as_far_as_it_is_certain_whatever_stands_around_it():
    for case in map(json.loads, STREAMED):
        for size in case.get("sizes", (1, 3, 7, 1000)):
            assert streamed(case["raw"], size) == (case["shown"], case["message"]), size


def test_the_message_appears_as_it_is_written_and_nothing_else():
    stream = MessageStream()
    pieces = ['{"mess', 'age": "Hel', "lo, ", 'Ada!", "memo', 'ries": [{"content": "x y"}]}']
    assert [stream.feed(piece) for piece in pieces] == ["", "Hel", "lo,", " Ada!", ""]
    assert [draft.content for draft in parse_answer("".join(pieces)).memories] == ["x y"]


@pytest.mark.parametrize("size", [1, 10_000])
def test_plain_text_streams_once_it_is_clear_that_no_envelope_follows(size):
    text = LONG * 3 + 'Take [the] {blue} one, 3 < 4:\n\n```json\n{"size": 1}\n```\n\n' + LONG * 2
    shown, message = streamed(text, size)
    assert message == text.strip()
    assert message.startswith(shown)
    assert len(shown) > len(message) - 80


def test_plain_text_does_not_wait_for_its_end():
    for beginning in ("", "<3 ", "Hm? ", "'Tis so: "):
        stream = MessageStream()
        assert stream.feed(beginning + LONG * 2) != ""
        assert len(stream.shown) >= CERTAIN


def test_an_undecided_place_is_left_to_the_end():
    raw = '{"message": "Hi"' + " " * (PATIENCE + 10) + ', "memories": []}'
    assert streamed(raw) == ("Hi", "Hi")


def test_a_message_is_shown_that_begins_as_a_placeholder_or_is_a_quote():
    assert streamed('{"message": "s", "memories": []}') == ("s", "s")
    assert streamed('{"message": "«", "memories": []}') == ("«", "«")
    assert streamed('{"message": "sty", "memories": []}', 1) == ("sty", "sty")


@settings(deadline=None)
@given(
    message=st.text(st.characters(exclude_categories=["Cs"])),
    escaped=st.booleans(),
    indent=st.sampled_from([None, 1]),
    wrapped=st.sampled_from(["{}", "```json\n{}\n```", "<think>a {{b}}</think>\n{}", "\ufeff{}\n"]),
    data=st.data(),
)
def test_what_is_shown_is_always_a_prefix_of_the_message(message, escaped, indent, wrapped, data):
    raw = json.dumps(
        {"mood": "calm", "message": message, "memories": ["Has a cat"]}, ensure_ascii=escaped, indent=indent
    )
    raw = wrapped.format(raw)
    stream, position, shown = MessageStream(), 0, ""
    while position < len(raw):
        size = data.draw(st.integers(1, 12))
        shown += stream.feed(raw[position : position + size])
        position += size
    final = parse_answer(raw).message
    assert final.startswith(shown)
    if not final.startswith("{") and final != "Noted, I will remember that.":
        assert shown == final


@settings(deadline=None)
@given(st.text(st.sampled_from("abc .,!?é\n'-()\"[]<>`{}:")), st.integers(1, 9))
def test_plain_text_shows_no_more_than_the_answer(text, size):
    text = LONG + text + LONG
    shown, message = streamed(text, size)
    assert message.startswith(shown)


@pytest.mark.parametrize("size", [150, pytest.param(2_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("opening", ["", '{"message": "x', '{"a": ', LONG * 2])
def test_a_hostile_or_long_stream_takes_linear_time(opening, size):
    for repeated in REPEATED:
        short, long = (opening + repeated * (length // len(repeated)) for length in (size, 4 * size))
        assert steps_of(streamed, long) < 6 * steps_of(streamed, short), repeated


def test_a_long_message_streams_whole():
    raw = '{"message": "x' + LONG * 100 + 'x", "memories": []}'
    shown, message = streamed(raw)
    assert shown == message == "x" + LONG * 100 + "x"
