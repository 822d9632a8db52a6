import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text import LONGEST_TAG, one_line, prose, readable, sentences, storable, tag, tags


@pytest.mark.parametrize(
    ("given", "kept"),
    [("plain 😀", "plain 😀"), ("a\x00b", "ab"), ("half \ud83d", "half �"), ("\ud83d\ude00", "😀"), ("", "")],
)
def test_text_is_made_writable(given: str, kept: str) -> None:
    assert storable(given) == kept
    assert storable(kept) == kept


@given(st.text(st.characters()))
def test_any_text_can_be_encoded_and_drives_no_terminal(text):
    for made in (storable(text), readable(text), one_line(text)):
        made.encode()
        assert "\x00" not in made
    assert not set("\x1b\r\x07\x9b") & set(readable(text) + one_line(text))
    assert "\n" not in one_line(text)
    assert readable("A\x1b[1mB\x1b[0m\r\nC\t\ud83c\udf66") == "AB\nC\t🍦"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        (" \n ", []),
        ("One", ["One"]),
        ("One. Two! Three? Four… Five", ["One.", "Two!", "Three?", "Four…", "Five"]),
        ('She said "no." He left.', ['She said "no."', "He left."]),
        ("Elle dit « non. » Il part.", ["Elle dit « non.", "» Il part."]),
        ("كيف حالك؟ بخير.", ["كيف حالك؟", "بخير."]),
        ("我搬到里昂了。我喜欢滑雪！", ["我搬到里昂了。", "我喜欢滑雪！"]),
        ("मीना पुणे में है। वह ख़ुश है॥", ["मीना पुणे में है।", "वह ख़ुश है॥"]),
        ("ሳራ ነኝ።ደህና ነኝ።", ["ሳራ ነኝ።", "ደህና ነኝ።"]),
        ("ငါစုပါ။နေကောင်းလား။", ["ငါစုပါ။", "နေကောင်းလား။"]),
        ("Ես Անան եմ։ Բարև։", ["Ես Անան եմ։", "Բարև։"]),
        ("他说：「好。」然后走了。", ["他说：「好。」", "然后走了。"]),
        ("- milk\n- bread\r\n\r\n- eggs", ["- milk", "- bread", "- eggs"]),
        ("one\u2028two\u2029three\x85four", ["one", "two", "three", "four"]),
    ],
)
def test_a_text_is_split_into_sentences(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts


@given(st.text(st.sampled_from('ab .!?…"”」。！？।။؟\n\r\u2028 3é'), max_size=40) | st.text(max_size=60))
def test_splitting_into_sentences_loses_only_white_space(text: str) -> None:
    parts = sentences(text)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert sentences("\n".join(parts)) == parts
    assert all(part == part.strip() and len(part.splitlines()) == 1 for part in parts)


def test_a_tag_has_no_case_and_one_form_that_can_be_stored_and_indexed() -> None:
    assert tags([" Zoe\u0308", "ZO\u00cb", "Stra\u00dfe", "", " "]) == ("zo\u00eb", "strasse")
    assert tags(["a\x00b", "\ud800", "\x00"]) == ("ab", "\ufffd")
    assert tag("x" * 10 * LONGEST_TAG) == "x" * LONGEST_TAG


def test_prose_is_what_stands_outside_code_unless_there_is_nothing_else() -> None:
    assert prose("Why does it fail?\n```js\nlet a = `b`;\n```\nIt did not on Monday.").split() == (
        "Why does it fail? It did not on Monday.".split()
    )
    assert prose("Cut off:\n~~~\nlet a") == "Cut off:"
    for text in ("```\nlet a\n```", "`a` and ```b``` in a line"):
        assert prose(text) == text
