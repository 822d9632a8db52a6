"""A breaker leaves a server that keeps failing alone, and asks it once in a while."""

import logging
from datetime import timedelta
from typing import Any

import pytest

from memory.process.breaker import (
    FAILURES,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    Breaker,
    CircuitOpen,
    calls_for,
    retry_at,
)

Clock = Any


def fail(breaker: Breaker, error: Exception | None = None, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(type(error or OSError())), breaker.calling():
            raise error or OSError("nobody answers")


def succeed(breaker: Breaker) -> None:
    with breaker.calling():
        pass


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker("model", clock)


def test_it_opens_after_failures_in_a_row_and_says_why_and_until_when(breaker: Breaker, clock: Clock) -> None:
    fail(breaker, times=FAILURES - 1)
    succeed(breaker)
    fail(breaker, times=FAILURES - 1)
    assert breaker.state == "closed"
    fail(breaker)
    assert breaker.state == "open"
    with pytest.raises(
        CircuitOpen, match=r"nobody answers \(not tried again before 09:30:02 UTC\)"
    ) as refused:
        succeed(breaker)
    assert refused.value.until == clock() + FIRST_PAUSE


def test_one_probe_goes_through_after_the_pause_and_closes_it(breaker: Breaker, clock: Clock) -> None:
    fail(breaker, times=FAILURES)
    clock.now += FIRST_PAUSE
    assert breaker.state == "half-open"
    with pytest.raises(KeyboardInterrupt), breaker.calling():
        raise KeyboardInterrupt  # a cancelled one leaves the way free for another
    with breaker.calling():
        with pytest.raises(CircuitOpen):
            succeed(breaker)
        with pytest.raises(CircuitOpen):
            breaker.check()
    assert breaker.state == "closed"
    succeed(breaker)


def test_each_failed_probe_doubles_the_pause_up_to_a_minute(breaker: Breaker, clock: Clock) -> None:
    fail(breaker, times=FAILURES)
    pauses = []
    for _ in range(8):
        began = clock()
        while breaker.state == "open":
            clock.now += timedelta(seconds=1)
        pauses.append((clock() - began).total_seconds())
        fail(breaker)
    assert pauses == [2, 4, 8, 16, 32, 60, 60, 60]
    clock.now += LONGEST_PAUSE
    succeed(breaker)
    fail(breaker, times=FAILURES)
    clock.now += FIRST_PAUSE
    assert breaker.state == "half-open"


def test_an_error_that_is_no_fault_of_the_server_counts_as_an_answer(breaker: Breaker) -> None:
    fail(breaker, times=FAILURES - 1)
    with pytest.raises(ValueError, match="bad request"), breaker.calling(lambda error: None):
        raise ValueError("bad request")
    fail(breaker, times=FAILURES - 1)
    assert breaker.state == "closed"


def test_it_logs_what_it_does(breaker: Breaker, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "hachi.breaker")
    fail(breaker, times=FAILURES)
    for _ in range(3):
        clock.now += LONGEST_PAUSE
        fail(breaker)
    clock.now += LONGEST_PAUSE
    succeed(breaker)
    lines = [record.getMessage() for record in caplog.records]
    assert lines == ["the model is left alone for a while: nobody answers", "the model answers again"]


def test_an_error_tells_whether_an_open_breaker_is_behind_it(breaker: Breaker, clock: Clock) -> None:
    fail(breaker, times=FAILURES)
    with pytest.raises(CircuitOpen) as refused:
        succeed(breaker)
    above = ValueError("no vectors")
    above.__cause__ = refused.value
    assert retry_at(above) == clock() + FIRST_PAUSE
    assert retry_at(OSError()) is None


def ask(breaker: Breaker, person: str, *, fails: bool = True, attempts: int = 1) -> None:
    with calls_for(person):
        for _ in range(attempts):
            fail(breaker) if fails else succeed(breaker)


def test_the_attempts_of_one_request_count_once_and_of_two_who_are_active_both_must_fail(
    clock: Clock,
) -> None:
    alone = Breaker("model", clock)
    for _ in range(FAILURES - 1):
        ask(alone, "eve", attempts=3)
    assert alone.state == "closed"
    ask(alone, "eve")
    assert alone.state == "open"
    for failing, state in (
        (["eve"] * 9, "closed"),
        (["bob", "eve"], "closed"),
        ([*["eve"] * 9, "bob"], "open"),
    ):
        breaker = Breaker("model", clock)
        ask(breaker, "bob", fails=False)
        for person in failing:
            ask(breaker, person)
        assert breaker.state == state
    breaker = Breaker("model", clock)
    for person in ("eve", "bob", "eve", "eve"):
        ask(breaker, person, fails=False)
        clock.now += timedelta(minutes=2)
    for _ in range(FAILURES):
        ask(breaker, "eve")
    assert breaker.state == "open", "bob is active no longer"
