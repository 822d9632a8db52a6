from hypothesis import given
from hypothesis import strategies as st

from memory.text.tags import LONGEST, tag, tags


def test_a_tag_has_no_case_and_one_form() -> None:
    assert tags([" Zoe\u0308", "ZO\u00cb", "Stra\u00dfe", "", " "]) == ("zo\u00eb", "strasse")


def test_a_tag_can_be_stored_and_indexed() -> None:
    assert tags(["a\x00b", "\ud800", "\x00"]) == ("ab", "\ufffd")
    assert tag("x" * 10 * LONGEST) == "x" * LONGEST


@given(st.text())
def test_a_tag_is_its_own_tag(text: str) -> None:
    assert tag(tag(text)) == tag(text)
