"""A reply that is shown while it is generated, in one or more messages."""

import asyncio

import pytest

from agent.surfaces.bots.live_text import ATTEMPTS, EDIT_SECONDS, LiveText, MessageGone, PostedText


class Screen:
    """What was shown, and when, by a clock that sleeping moves on."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.texts: list[str] = []
        self.times: list[float] = []
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
        self.texts.append(text)
        self.times.append(self.now)


@pytest.fixture
def screen() -> Screen:
    return Screen()


async def a_while() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_text_is_shown_at_most_once_a_second(screen: Screen) -> None:
    async with screen.live() as live:
        for piece in (" ", "Hel", "lo ", "there"):
            live.add(piece)
            await a_while()
        assert await live.finish(lambda: screen.show("Hello there!"))
    assert screen.texts == [" Hel", " Hello ", " Hello there", "Hello there!"], "a blank text is not shown"
    waits = [later - earlier for earlier, later in zip(screen.times, screen.times[1:], strict=False)]
    assert min(waits) >= EDIT_SECONDS


async def test_a_slow_platform_that_fails_once_gets_only_the_newest_text(screen: Screen) -> None:
    screen.gate.clear()
    screen.failures = 1
    async with screen.live() as live:
        for piece in "abcdef":
            live.add(piece)
            await a_while()
        screen.gate.set()
        await a_while()
        assert await live.finish(lambda: screen.show("abcdef."))
    assert screen.texts == ["abcdef", "abcdef."]


@pytest.mark.parametrize(("failures", "shown"), [(0, ["done"]), (ATTEMPTS - 1, ["done"]), (ATTEMPTS, [])])
async def test_the_final_text_is_tried_again_after_longer_and_longer_waits(
    screen: Screen, failures: int, shown: list[str]
) -> None:
    screen.failures = failures
    async with screen.live() as live:
        assert await live.finish(lambda: screen.show("done")) is bool(shown)
    assert screen.texts == shown
    assert screen.slept == ([1, 2, 4] if failures else [])


async def test_nothing_is_shown_after_the_block_is_left(screen: Screen) -> None:
    screen.gate.clear()
    async with screen.live() as live:
        live.add("a")
        await a_while()
    screen.gate.set()
    await a_while()
    assert screen.texts == []


class Channel:
    """Messages by number."""

    def __init__(self) -> None:
        self.messages: dict[int, str] = {}
        self.calls: list[str] = []
        self.failures = 0

    @property
    def texts(self) -> list[str]:
        return list(self.messages.values())

    async def post(self, text: str) -> int:
        self._maybe_fail()
        number = len(self.calls)
        self.messages[number] = text
        self.calls.append("post")
        return number

    async def edit(self, number: int, text: str) -> None:
        self._maybe_fail()
        if number not in self.messages:
            raise MessageGone
        self.messages[number] = text
        self.calls.append("edit")

    async def remove(self, number: int) -> None:
        if self.messages.pop(number, None) is None:
            raise MessageGone

    def _maybe_fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError


@pytest.fixture
def channel() -> Channel:
    return Channel()


@pytest.fixture
def posted(channel: Channel) -> PostedText[int]:
    return PostedText(100, channel.post, channel.edit, channel.remove)


A, B, C = "a" * 90 + "\n", "b" * 90 + "\n", "c" * 90 + "\n"


async def test_a_growing_text_continues_in_further_messages_and_a_shorter_one_removes_them(
    channel: Channel, posted: PostedText[int]
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
    [
        ("text", ["text\n\none\ntwo"]),
        ("", ["one\ntwo"]),
        ("a" * 92, ["a" * 92, "one\ntwo"]),
        (A + "b" * 92, [A, "b" * 92, "one\ntwo"]),
    ],
)
async def test_the_footer_is_not_split(
    channel: Channel, posted: PostedText[int], text: str, shown: list[str]
) -> None:
    await posted.show(text, "one\ntwo")
    assert channel.texts == shown


async def test_a_deleted_message_is_posted_again_and_an_error_is_made_up_for(
    channel: Channel, posted: PostedText[int]
) -> None:
    await posted.show("one")
    channel.messages.clear()
    await posted.show(A)
    channel.failures = 1
    with pytest.raises(ConnectionError):
        await posted.show(A + B)
    await posted.show(A + B)
    assert channel.texts == [A, B]
    channel.messages.clear()
    await posted.show("three")
    assert channel.texts == ["three"]
