"""Plain text is taken apart at its empty lines and underlined headings."""

from hypothesis import given
from hypothesis import strategies as st

from memory.documents.formats.blocks import Block
from memory.documents.formats.plain_text import parse


def test_paragraphs_stand_between_empty_lines() -> None:
    parsed = parse("one\n  two\n \t\n\nthree\r\n\r\nfour")
    assert [block.text for block in parsed.blocks] == ["one\n  two", "three", "four"]
    assert parsed.title == ""


def test_underlined_lines_are_headings_the_first_sign_the_outermost() -> None:
    parsed = parse("=====\nGuide\n=====\nHello.\n\nSetting up\n----------\n\nInstall it.\n\nOther\n=====\n")
    assert parsed.title == "Guide"
    assert parsed.blocks == (
        Block("heading", "Guide", level=1),
        Block("text", "Hello."),
        Block("heading", "Setting up", level=2),
        Block("text", "Install it."),
        Block("heading", "Other", level=1),
    )


def test_a_short_rule_under_a_long_line_is_no_heading() -> None:
    text = "This sentence is far longer than the rule below it\n---\nand goes on."
    assert parse(text).blocks == (Block("text", text),)


@given(st.text())
def test_nothing_but_space_and_underlines_is_lost(text: str) -> None:
    kept = "".join(block.text for block in parse(text).blocks)
    assert {c for c in text if c.isalnum()} == {c for c in kept if c.isalnum()}
