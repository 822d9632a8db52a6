"""A reply that is shown while it is generated, in one or more messages."""

import asyncio
import time
from typing import Any

import pytest

from agent.surfaces.bots.answers import Answer, Item
from agent.surfaces.bots.streamed_reply import ATTEMPTS, Refused, Reply

A, B, C = "a" * 90 + "\n", "b" * 90 + "\n", "c" * 90 + "\n"


def reply(posts: Any, **options: Any) -> Reply:
    return Reply(posts, **{"interval": 0.01} | options)


async def write(reply: Reply, *pieces: str) -> None:
    for piece in pieces:
        reply.add(piece)
        await asyncio.sleep(0.03)


async def test_text_is_shown_at_most_once_per_interval_and_the_final_one_at_once(posts) -> None:
    begun = time.monotonic()
    async with reply(posts, interval=9) as live:
        await write(live, " ", "Hel", "lo ", "there")
        assert posts.texts == [" Hel"], "a blank text is not shown"
        assert await live.finish("Hello there!")
    assert (posts.texts, posts.calls) == (["Hello there!"], ["post", "edit", "conclude"])
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(("failures", "shown"), [(ATTEMPTS - 1, ["done"]), (ATTEMPTS, [])])
async def test_the_final_text_is_tried_again(posts, failures, shown) -> None:
    posts.failures = failures
    async with reply(posts) as live:
        assert await live.finish("done") is bool(shown)
    assert posts.texts == shown


async def test_what_stands_below_a_reply_is_shown_once_though_it_is_tried_again(posts) -> None:
    receipts, question = (Item("Ana likes tea"),), Answer("Shall I?")
    async with reply(posts) as live:
        await write(live, "Noted")
        posts.failures = 1
        assert await live.finish("```\nNoted.", receipts, question)
    assert posts.texts == ["```\nNoted.\n```\n\nAna likes tea"], "a block is closed above it"
    assert (posts.receipts, posts.question) == (receipts, question)
    assert posts.calls == ["post", "edit", "edit", "conclude", "ask"]


async def test_a_growing_text_continues_in_further_messages_that_a_shorter_one_removes(posts) -> None:
    live = reply(posts)
    for text in ("", "aa", A, A + "b", A + B + C, A + B + C):
        await live._show(text)
    assert posts.texts == [A, B, C]
    assert posts.calls == ["post", "edit", "edit", "edit", "post", "post"]
    await live._show("")
    assert posts.texts == [A], "the first message stays"
    await live._show("short")
    assert posts.texts == ["short"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("text", ["text\n\none\ntwo"]), ("", ["one\ntwo"]), (A + "b" * 92, [A, "b" * 92, "one\ntwo"])],
)
async def test_the_footer_is_not_split(posts, text, shown) -> None:
    await reply(posts)._show(text, "one\ntwo")
    assert posts.texts == shown


async def test_of_a_reply_that_somebody_deletes_nothing_more_is_shown(posts) -> None:
    ended: list[bool] = []
    async with reply(posts, stopped=lambda: ended.append(True)) as live:
        await write(live, "my PIN is")
        posts.messages.clear()
        await write(live, " 4711")
        assert ended == [True]
        assert await live.finish("my PIN is 4711", (Item("PIN"),))
    assert (posts.texts, posts.receipts) == ([], None)


async def test_of_a_text_that_the_platform_refuses_a_short_line_stands_in_its_place(
    posts, monkeypatch
) -> None:
    post, refused = posts.post, []

    async def choosy(text: str, *, final: bool) -> int:
        if "odd" in text:
            refused.append((text, final))
            raise Refused from ValueError("invalid_blocks")
        return int(await post(text, final=final))

    monkeypatch.setattr(posts, "post", choosy)
    async with reply(posts) as live:
        await write(live, "odd", " and", " odder")
        assert await live.finish("odd and odder.", (), Answer("Shall I?"), instead="It cannot be shown.")
    assert refused == [("odd", False), ("odd and odder.", True)], "once while it grows and once as it is"
    assert posts.texts == ["It cannot be shown."]
    assert posts.question == Answer("Shall I?")


async def test_a_line_that_is_refused_too_is_not_tried_again(posts, monkeypatch) -> None:
    async def refuse(text: str, *, final: bool) -> int:
        raise Refused

    monkeypatch.setattr(posts, "post", refuse)
    async with reply(posts) as live:
        assert await live.finish("odd", (Item("Ana is odd"),), instead="It cannot be shown.")
    assert (posts.texts, posts.receipts) == ([], None)
