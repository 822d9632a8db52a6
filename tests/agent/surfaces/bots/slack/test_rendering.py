"""Slack's markup, read and written, and answers as its blocks, within its limits."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slack_server import _fits, buttons_of

from agent.surfaces.bots.answers import Answer, Button, Item
from agent.surfaces.bots.slack.rendering import (
    MAX_BLOCKS,
    REPLACES,
    answer_blocks,
    answer_text,
    escape,
    escape_markdown,
    mentioned_users,
    readable_text,
    shorten,
)

TEXT = st.lists(
    st.sampled_from([*"<>&!@#|:/ \nhtps*`~ab;é中🐕", "```", "\n```\n", "<!channel>", "<@U1>"])
).map("".join)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("hello <@UANA>", "hello @Ana"),
        ("<@UNEW|newbie> and <@UOLD>", "@newbie and @UOLD"),
        ("in <#C1|general> and <#C2>", "in #general and #C2"),
        ("<!channel> <!subteam^S1|@cooks> <!date^1^{date}|today>", "@channel @cooks today"),
        ("<https://hachi.test/a?b=1&amp;c=2>", "https://hachi.test/a?b=1&c=2"),
        ("<https://hachi.test|the page>", "the page (https://hachi.test)"),
        ("<https://hachi.test|hachi.test>", "https://hachi.test"),
        ("<mailto:ana@hachi.test|ana@hachi.test>", "ana@hachi.test"),
        ("1 &lt; 2 &amp;&amp; 3 &gt; 2, &amp;lt;", "1 < 2 && 3 > 2, &lt;"),
        ("  שלום  ", "שלום"),
    ],
)
def test_messages_read_as_their_authors_saw_them(written: str, read: str) -> None:
    assert readable_text(written, {"UANA": "Ana"}) == read


def test_mentions_are_found_and_quotations_and_addresses_are_not_escaped_in_markdown() -> None:
    assert mentioned_users("<@UBEN> <@WANA|ana> <#C1> @UEVE") == ["UBEN", "WANA"]
    assert escape_markdown("> as Ben said\n2 > 1 & http://a.test/?b&c <x>") == (
        "> as Ben said\n2 &gt; 1 &amp; http://a.test/?b&c &lt;x&gt;"
    )


@settings(max_examples=50)
@given(TEXT)
def test_escaped_text_reads_as_it_was_and_has_nothing_that_slack_acts_on(text: str) -> None:
    assert readable_text(escape(text), {}) == text.strip()
    assert "<" not in escape(text) + escape_markdown(text.replace("`", ""))
    assert not re.search("<(!channel|@U1)", escape_markdown(text))


@pytest.mark.parametrize(
    "code",
    [
        "~~~\na < b\n```\n& c\n~~~",
        "````\n```\n<a>\n```\n<b>\n````",
        "`a < b && *p`, ``x ` <y>`` and `_z_ > &`",
        "```\n<still being written>",
        "```\na\u2028<b>\x0b<c>\r\n<d>\r\n```",
    ],
)
def test_code_arrives_as_it_was_written(code: str) -> None:
    assert escape_markdown(code) == code
    assert escape_markdown(f"1 < 2\n{code}") == f"1 &lt; 2\n{code}"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("`a < b", "`a &lt; b"),
        ("``` <a> ``` & <b>", "``` <a> ``` &amp; &lt;b&gt;"),
        ("```\na\n```\n<b>", "```\na\n```\n&lt;b&gt;"),
        ("`<!channel> <@U1> <!DOCTYPE>`", "`&lt;!channel> &lt;@U1> <!DOCTYPE>`"),
        ("```\n<!here>", "```\n&lt;!here>"),
    ],
)
def test_what_is_not_code_is_escaped_and_code_notifies_nobody(text: str, escaped: str) -> None:
    assert escape_markdown(text) == escaped


BUTTONS = st.builds(Button, st.text(min_size=1), st.sampled_from(["delete", "undo"]), st.text(max_size=60))
LONG = st.text(st.sampled_from("<&> ab\n🐕"), max_size=200).map(lambda text: text * 20)
WORDS = LONG.map(lambda text: (text,))
ITEMS = st.builds(Item, LONG, WORDS, st.lists(BUTTONS, max_size=3).map(tuple), LONG)
ANSWERS = st.builds(
    Answer, LONG, st.lists(ITEMS, max_size=80).map(tuple), WORDS, st.lists(BUTTONS, max_size=30).map(tuple)
)


@settings(max_examples=20)
@given(ANSWERS)
def test_every_answer_fits_slacks_limits(answer: Answer) -> None:
    blocks = answer_blocks(answer)
    assert len(blocks) <= MAX_BLOCKS
    _fits({"text": answer_text(answer), "blocks": blocks})


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
    date = "<!date^1795176000^{date_short_pretty} at {time}|2026-11-20 12:00 UTC>"
    assert answer_text(answer) == f"I know:\nfact: *a* _b_ &lt;!channel&gt; (until {date})"
    for limit in range(8, len(date)):
        assert shorten(f"until {date}", limit) in ("until  …", "until …", "unti …", "unt …", "un …")
