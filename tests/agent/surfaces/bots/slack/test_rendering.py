"""Answers as Slack's blocks, within its limits."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from slack_server import _fits, buttons_of

from agent.surfaces.bots.answers import Answer, Button, Item
from agent.surfaces.bots.slack.rendering import (
    MAX_BLOCKS,
    REPLACES,
    answer_blocks,
    answer_text,
    escape,
    plain_text,
    shorten,
)

BUTTONS = st.builds(Button, st.text(min_size=1), st.sampled_from(["delete", "undo"]), st.text(max_size=60))
TEXT = st.text(st.sampled_from("<&> ab\n🐕"), max_size=200).map(lambda text: text * 20)
WORDS = TEXT.map(lambda text: (text,))
ITEMS = st.builds(Item, TEXT, WORDS, st.lists(BUTTONS, max_size=3).map(tuple), TEXT)
ANSWERS = st.builds(
    Answer, TEXT, st.lists(ITEMS, max_size=80).map(tuple), WORDS, st.lists(BUTTONS, max_size=30).map(tuple)
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


def test_one_button_of_one_line_replaces_its_message() -> None:
    forget, undo = Button("Forget", "delete", "1"), Button("Undo", "restore", "2")
    line = Item("tea", buttons=(forget,))
    for answer, replaces in (
        (Answer("?", (line,)), True),
        (Answer("?", (line,), (), (undo,)), False),
        (Answer("?", (line, line)), False),
    ):
        [forget_it, *_] = buttons_of(answer_blocks(answer))
        assert forget_it["action_id"].endswith(REPLACES) is replaces


def test_facts_are_shown_as_they_are_and_times_by_the_readers_clock() -> None:
    noon = datetime(2026, 11, 20, 12, tzinfo=UTC)
    answer = Answer("I know:", (Item("*a* _b_ <!channel>", ("until ", noon), label="fact"),))
    [_, fact] = answer_blocks(answer)
    said = fact["elements"][0]["elements"]
    assert [one.get("text") for one in said] == ["fact: ", "*a* _b_ <!channel>", "  ", "until ", None]
    assert (fact["type"], said[1].get("style"), said[4]["timestamp"]) == ("rich_text", None, 1795176000)
    assert answer_text(answer) == "I know:\nfact: *a* _b_ &lt;!channel&gt; (until 2026-11-20 12:00 UTC)"
