"""Answers as Discord shows them, and how people and places of Discord are named."""

import re
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from agent.surfaces.bots.answers import Answer, Button, Item
from agent.surfaces.bots.discord.messages import channel_id, place_of, user_id, user_name
from agent.surfaces.bots.discord.replies import LIMIT, answer_text, answer_view, escape, receipt_lines
from agent.surfaces.bots.splitting import utf16_length
from memory.audience import Place

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
LETTERS = st.text(max_size=400)


@given(
    LETTERS, st.lists(st.builds(Item, LETTERS, LETTERS.map(lambda text: (text,)), label=LETTERS), max_size=12)
)
def test_every_answer_fits_discords_limit(text: str, items: list[Item]) -> None:
    assert utf16_length(answer_text(Answer(text, tuple(items), note=("that is all",)))) <= LIMIT


def test_items_with_buttons_are_numbered() -> None:
    forget = Button("Forget", "delete", "1")
    assert answer_text(Answer("I know:", (Item("a", ("until ", NOON), (forget,)), Item("b")))) == (
        "I know:\n1. a (until <t:1795176000:f>)\n2. b"
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
    assert escape("see https://a.example/my_page?x=1#y") == "see https://a.example/my_page?x=1#y"
    assert escape("# big _slanted_ - a__b") == "\\# big \\_slanted\\_ - a\\_\\_b"


def test_receipts_are_small_print() -> None:
    items = [Item("Ana has the flu", ("until ", NOON)), Item("Ana likes *tea*")]
    assert receipt_lines(items).splitlines() == [
        "-# Remembered until <t:1795176000:f>: Ana has the flu",
        "-# Remembered: Ana likes \\*tea\\*",
    ]
    assert receipt_lines([]) == ""


def test_only_users_of_discord_have_a_discord_id() -> None:
    assert (user_name(12), user_id("discord:12")) == ("discord:12", 12)
    assert [user_id(name) for name in ("slack:T1:U1", "discord:", "discord:ana", "ana")] == [None] * 4


def test_only_channels_and_threads_have_an_id_and_an_unknown_channel_is_not_private() -> None:
    assert channel_id(Place(("discord", "1", "2"))) == 2
    assert channel_id(Place(("discord", "1", "2", "3"))) == 3
    for path in ((), ("discord",), ("discord", "1"), ("slack", "1", "2"), ("discord", "1", "general")):
        assert channel_id(Place(path)) is None
    assert place_of(None) is place_of(object()) is None
