"""Slack's markup, read and written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.surfaces.bots.slack.mrkdwn import escape, escape_markdown, mentioned_users, plain_text

TEXT = st.text(st.sampled_from("<>&!@#|:/ \nhtps*`ab;é中🐕"))


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
    assert plain_text(written, {"UANA": "Ana"}) == read


def test_mentions_are_found_and_quotations_and_addresses_are_not_escaped_in_markdown() -> None:
    assert mentioned_users("<@UBEN> <@WANA|ana> <#C1> @UEVE") == ["UBEN", "WANA"]
    assert escape_markdown("> as Ben said\n2 > 1 & http://a.test/?b&c <x>") == (
        "> as Ben said\n2 &gt; 1 &amp; http://a.test/?b&c &lt;x&gt;"
    )


@given(TEXT)
def test_escaped_text_reads_as_it_was_and_has_nothing_that_slack_acts_on(text: str) -> None:
    assert plain_text(escape(text), {}) == text.strip()
    assert "<" not in escape(text) + escape_markdown(text)


@given(TEXT, TEXT)
def test_a_growing_text_only_gets_longer_when_escaped(start: str, rest: str) -> None:
    assert escape_markdown(start + rest).startswith(escape_markdown(start))
