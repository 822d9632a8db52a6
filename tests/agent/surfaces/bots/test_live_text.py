"""A reply that is shown while it is generated, in one or more messages."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from agent.surfaces.bots.live_text import ATTEMPTS, EDIT_SECONDS, LiveText, MessageGone, NotNow, PostedText


class Screen:
    """What was shown, and when, by a clock that sleeping moves on."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.shown: list[tuple[float, str]] = []
        self.failures = 0
        self.gate = asyncio.Event()
        self.gate.set()

    def live(self) -> LiveText:
        return LiveText(self.show, sleep=self.sleep, monotonic=lambda: self.now)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    async def show(self, text: str) -> None:
        await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the platform is away")
        self.shown.append((self.now, text))

    async def write(self, live: LiveText, *pieces: str) -> None:
        for piece in pieces:
            live.add(piece)
            for _ in range(20):
                await asyncio.sleep(0)


@pytest.fixture
def screen() -> Screen:
    return Screen()


async def test_text_is_shown_at_most_once_a_second(screen) -> None:
    async with screen.live() as live:
        await screen.write(live, " ", "Hel", "lo ", "there")
        assert await live.finish(lambda: screen.show("Hello there!"))
    times, texts = zip(*screen.shown, strict=True)
    assert texts == (" Hel", " Hello ", " Hello there", "Hello there!"), "a blank text is not shown"
    assert all(later - earlier >= EDIT_SECONDS for earlier, later in pairwise(times))


async def test_a_slow_platform_that_fails_once_gets_only_the_newest_text(screen) -> None:
    screen.gate.clear()
    screen.failures = 1
    async with screen.live() as live:
        await screen.write(live, *"abcdef")
        screen.gate.set()
        await screen.write(live, "")
        assert await live.finish(lambda: screen.show("abcdef."))
    assert [text for _, text in screen.shown] == ["abcdef", "abcdef."]


async def test_what_the_platform_does_not_take_now_is_shown_later_without_a_further_piece(screen) -> None:
    refused = [True, True]

    async def show(text: str) -> None:
        if refused:
            refused.pop()
            raise NotNow
        await screen.show(text)

    async with LiveText(show, sleep=screen.sleep, monotonic=lambda: screen.now) as live:
        await screen.write(live, "Hello")
        assert screen.shown == [(2 * EDIT_SECONDS, "Hello")]


@pytest.mark.parametrize(("failures", "shown"), [(0, 1), (ATTEMPTS - 1, 1), (ATTEMPTS, 0)])
async def test_the_final_text_is_tried_again_after_longer_and_longer_waits(screen, failures, shown) -> None:
    screen.failures = failures
    async with screen.live() as live:
        assert await live.finish(lambda: screen.show("done")) is bool(shown)
    assert len(screen.shown) == shown
    assert screen.slept == ([1, 2, 4] if failures else [])


async def test_nothing_is_shown_after_the_block_is_left(screen) -> None:
    screen.gate.clear()
    async with screen.live() as live:
        await screen.write(live, "a")
    screen.gate.set()
    await screen.write(live, "b")
    assert screen.shown == []


class Channel:
    """Messages by number."""

    def __init__(self) -> None:
        self.messages: dict[int, str] = {}
        self.calls: list[str] = []
        self.fails = False

    @property
    def texts(self) -> list[str]:
        return list(self.messages.values())

    async def post(self, text: str) -> int:
        if self.fails:
            raise ConnectionError
        self.calls.append("post")
        self.messages[len(self.calls)] = text
        return len(self.calls)

    async def edit(self, number: int, text: str) -> None:
        if number not in self.messages:
            raise MessageGone
        self.calls.append("edit")
        self.messages[number] = text

    async def remove(self, number: int) -> None:
        if self.messages.pop(number, None) is None:
            raise MessageGone


@pytest.fixture
def channel() -> Channel:
    return Channel()


@pytest.fixture
def posted(channel: Channel) -> Any:
    return PostedText(100, channel.post, channel.edit, channel.remove)


A, B, C = "a" * 90 + "\n", "b" * 90 + "\n", "c" * 90 + "\n"


async def test_a_growing_text_continues_in_further_messages_that_a_shorter_one_removes(
    channel, posted
) -> None:
    for text in ("", "aa", A, A + "b", A + B + C, A + B + C):
        await posted.show(text)
    assert channel.texts == [A, B, C]
    assert channel.calls == ["post", "edit", "edit", "edit", "post", "post"]
    assert posted.handles == list(channel.messages)
    await posted.show("")
    assert channel.texts == [A], "the first message stays"
    await posted.show("short")
    assert channel.texts == ["short"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("text", ["text\n\none\ntwo"]), ("", ["one\ntwo"]), (A + "b" * 92, [A, "b" * 92, "one\ntwo"])],
)
async def test_the_footer_is_not_split(channel, posted, text, shown) -> None:
    await posted.show(text, "one\ntwo")
    assert channel.texts == shown


async def test_a_deleted_message_is_posted_again_and_an_error_is_made_up_for(channel, posted) -> None:
    await posted.show("one")
    channel.messages.clear()
    await posted.show(A)
    channel.fails = True
    with pytest.raises(ConnectionError):
        await posted.show(A + B)
    channel.fails = False
    await posted.show(A + B)
    assert channel.texts == [A, B]
    channel.messages.clear()
    await posted.show("three")
    assert channel.texts == ["three"]
