"""Answers as Slack's blocks, within its limits."""

from hypothesis import given
from hypothesis import strategies as st
from slack_server import _fits

from agent.surfaces.bots.answers import Answer, Button, Item
from agent.surfaces.bots.slack.mrkdwn import escape, plain_text
from agent.surfaces.bots.slack.rendering import (
    ALONE,
    MAX_BLOCKS,
    answer_blocks,
    answer_text,
    item_blocks,
    shorten,
)

BUTTONS = st.builds(Button, st.text(min_size=1), st.sampled_from(["delete", "undo"]), st.text(max_size=60))
TEXT = st.text(st.sampled_from("<&> ab\n🐕"), max_size=200).map(lambda text: text * 20)
ITEMS = st.builds(Item, TEXT, TEXT, st.lists(BUTTONS, max_size=3).map(tuple), TEXT)
ANSWERS = st.builds(
    Answer, TEXT, st.lists(ITEMS, max_size=80).map(tuple), TEXT, st.lists(BUTTONS, max_size=30).map(tuple)
)


@given(ANSWERS)
def test_every_answer_fits_slacks_limits(answer: Answer) -> None:
    blocks = answer_blocks(answer)
    assert len(blocks) <= MAX_BLOCKS
    _fits({"text": answer_text(answer), "blocks": blocks})


@given(TEXT, st.integers(8, 60))
def test_shortened_text_is_still_escaped(text: str, limit: int) -> None:
    short = shorten(escape(text), limit)
    assert len(short) <= limit
    assert text.startswith(plain_text(short.removesuffix(" …"), {}).strip()) or text.strip().startswith(
        plain_text(short.removesuffix(" …"), {})
    )


def test_what_replaces_a_line_leaves_the_buttons_of_the_whole_answer() -> None:
    forget, undo = Button("Forget", "delete", "1"), Button("Undo", "restore", "2")
    line = Item("tea", buttons=(forget,))
    pressed = [answer_blocks(Answer("?", (line,), "", buttons))[1] for buttons in ((), (undo,))]
    assert [one["accessory"]["action_id"].endswith(ALONE) for one in pressed] == [True, False]


def test_one_button_stands_beside_its_line_and_several_below_it() -> None:
    undo, edit = Button("Undo", "undo"), Button("Edit", "edit", style="danger")
    assert [block["type"] for block in item_blocks([Item("tea", buttons=(undo,))])] == ["section"]
    several = item_blocks([Item("tea", buttons=(undo, edit))])
    assert [block["type"] for block in several] == ["section", "actions"]
    assert several[1]["elements"][1]["style"] == "danger"
