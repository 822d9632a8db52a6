"""Answers as Discord shows them."""

import re

from hypothesis import given
from hypothesis import strategies as st

from agent.surfaces.bots.answers import Answer, Button, Item
from agent.surfaces.bots.discord.rendering import LIMIT, answer_text, answer_view, escape, receipt_lines
from agent.surfaces.bots.splitting import utf16_length

LETTERS = st.text(max_size=400)


@given(LETTERS, st.lists(st.builds(Item, LETTERS, LETTERS, label=LETTERS), max_size=12))
def test_every_answer_fits_discords_limit(text: str, items: list[Item]) -> None:
    assert utf16_length(answer_text(Answer(text, tuple(items), note="that is all"))) <= LIMIT


def test_items_with_buttons_are_numbered() -> None:
    forget = Button("Forget", "delete", "1")
    assert answer_text(Answer("I know:", (Item("a", "yesterday", (forget,)), Item("b")))) == (
        "I know:\n1. a (yesterday)\n2. b"
    )
    assert answer_text(Answer("You are:", (Item("nurse", label="role"),))) == "You are:\n- **role:** nurse"


def test_the_number_of_buttons_is_limited() -> None:
    items = tuple(Item("x", buttons=(Button("Forget", "delete", str(number)),)) for number in range(30))
    view = answer_view(Answer("many", items), 7)
    assert view is not None
    assert len(view.children) == 25
    assert answer_view(Answer("none", (Item("x"),)), 7) is None


@given(LETTERS)
def test_escaped_text_has_no_markup(text: str) -> None:
    """No link is hidden, no mention, no heading, no code is opened."""
    said = escape(f"[here](http://a.example) <@123> `{text}`")
    assert re.search(r"(?<!\\)\]", said) is None
    assert re.search(r"(?<!\\)<@", said) is None
    assert re.search(r"(?<!\\)`", said) is None


def test_names_and_addresses_stay_whole_and_other_markup_is_escaped() -> None:
    whole = "see https://a.example/my_page?x=1#y of snake_case"
    assert escape(whole) == whole
    assert escape("# big _slanted_ - not") == "\\# big \\_slanted\\_ - not"


def test_receipts_are_small_print() -> None:
    items = [Item("Ana has the flu", "until Friday"), Item("Ana likes *tea*")]
    assert receipt_lines(items, 0).splitlines() == [
        "-# Remembered until Friday: Ana has the flu",
        "-# Remembered: Ana likes \\*tea\\*",
    ]
    assert receipt_lines([], 0) == ""
    assert receipt_lines([], 3) == "-# … and 3 more: /memories"
