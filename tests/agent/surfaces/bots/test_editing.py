"""A reply that is shown while it is generated. Time is a clock that sleeping moves on."""

import asyncio

import pytest

from agent.surfaces.bots.editing import EVERY, TRIES, LiveText


class Time:
    """Sleeping takes no time, and moves the clock on."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class Shown:
    """What was shown, and when."""

    def __init__(self, time: Time) -> None:
        self._time = time
        self.texts: list[str] = []
        self.times: list[float] = []
        self.faults = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def show(self, text: str) -> None:
        await self.gate.wait()
        if self.faults:
            self.faults -= 1
            raise ConnectionError("the platform is away")
        self.texts.append(text)
        self.times.append(self._time.now)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def shown(time: Time) -> Shown:
    return Shown(time)


def live_on(shown: Shown, time: Time) -> LiveText:
    return LiveText(shown.show, sleep=time.sleep, monotonic=time.monotonic)


async def a_while() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_text_is_shown_as_it_comes_at_most_once_a_second(shown: Shown, time: Time) -> None:
    async with live_on(shown, time) as live:
        for piece in ("Hel", "lo ", "there"):
            live.add(piece)
            await a_while()
        assert await live.end(lambda: shown.show("Hello there!"))
    assert shown.texts == ["Hel", "Hello ", "Hello there", "Hello there!"]
    assert all(later - earlier >= EVERY for earlier, later in zip(shown.times, shown.times[1:], strict=False))


async def test_a_slow_platform_gets_the_newest_text_only(shown: Shown, time: Time) -> None:
    shown.gate.clear()
    async with live_on(shown, time) as live:
        for piece in "abcdef":
            live.add(piece)
            await a_while()
        shown.gate.set()
        await a_while()
        assert await live.end(lambda: shown.show("abcdef."))
    assert shown.texts == ["a", "abcdef", "abcdef."]


async def test_blank_text_is_not_shown(shown: Shown, time: Time) -> None:
    async with live_on(shown, time) as live:
        live.add(" \n")
        await a_while()
        assert shown.texts == []
        live.add("hi")
        await a_while()
    assert shown.texts == [" \nhi"]


async def test_a_final_text_alone_is_shown_at_once(shown: Shown, time: Time) -> None:
    async with live_on(shown, time) as live:
        assert await live.end(lambda: shown.show("done"))
    assert (shown.texts, time.slept) == (["done"], [])


async def test_an_edit_that_fails_is_made_up_for_by_the_next(shown: Shown, time: Time) -> None:
    shown.faults = 1
    async with live_on(shown, time) as live:
        live.add("a")
        await a_while()
        live.add("b")
        await a_while()
        assert await live.end(lambda: shown.show("ab."))
    assert shown.texts == ["ab", "ab."]


async def test_the_final_text_is_tried_again_with_longer_and_longer_waits(shown: Shown, time: Time) -> None:
    shown.faults = TRIES - 1
    async with live_on(shown, time) as live:
        assert await live.end(lambda: shown.show("done"))
    assert shown.texts == ["done"]
    assert time.slept == [1, 2, 4]


async def test_a_final_text_that_cannot_be_shown_is_told(shown: Shown, time: Time) -> None:
    shown.faults = TRIES
    async with live_on(shown, time) as live:
        assert not await live.end(lambda: shown.show("done"))
    assert shown.texts == []


async def test_nothing_is_shown_after_the_block_is_left(shown: Shown, time: Time) -> None:
    shown.gate.clear()
    async with live_on(shown, time) as live:
        live.add("a")
        await a_while()
    shown.gate.set()
    await a_while()
    assert shown.texts == []
