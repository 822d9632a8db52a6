"""A text as its sentences, in any script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.turn.sentences import sentences


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        (" \n ", []),
        ("One", ["One"]),
        ("One. Two! Three? Four… Five", ["One.", "Two!", "Three?", "Four…", "Five"]),
        ('She said "no." He left.', ['She said "no."', "He left."]),
        ("Elle dit « non. » Il part.", ["Elle dit « non.", "» Il part."]),
        ("It costs 3.50 at shop.example.com today.", ["It costs 3.50 at shop.example.com today."]),
        ("אנה גרה בליון. היא רופאה!", ["אנה גרה בליון.", "היא רופאה!"]),
        ("كيف حالك؟ بخير.", ["كيف حالك؟", "بخير."]),
        ("राम घर गया। सीता आई।", ["राम घर गया।", "सीता आई।"]),
        ("我搬到里昂了。我喜欢滑雪！", ["我搬到里昂了。", "我喜欢滑雪！"]),
        ("真的？！是的。", ["真的？！", "是的。"]),
        ("他说：「好。」然后走了。", ["他说：「好。」", "然后走了。"]),
        ("- milk\n- bread\r\n\r\n- eggs", ["- milk", "- bread", "- eggs"]),
        ("one\u2028two\u2029three\x85four", ["one", "two", "three", "four"]),
    ],
)
def test_a_text_falls_into_its_sentences(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts


@given(st.text(st.sampled_from('ab .!?…"”」。！？।؟\n\r\u2028 3é'), max_size=40) | st.text(max_size=60))
def test_nothing_is_lost_but_space_and_nothing_is_added(text: str) -> None:
    parts = sentences(text)

    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(part == part.strip() != "" for part in parts)


@given(st.text(st.sampled_from('ab .!?…"」。！？\n'), max_size=40))
def test_sentences_put_together_fall_apart_as_before(text: str) -> None:
    parts = sentences(text)

    assert sentences("\n".join(parts)) == parts


@given(st.text(max_size=60))
def test_a_sentence_is_a_line(text: str) -> None:
    assert all(len(part.splitlines()) == 1 for part in sentences(text))
