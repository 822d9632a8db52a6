import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text import one_line, readable, storable


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
