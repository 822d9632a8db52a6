"""A bucket of tokens for each key."""

from hypothesis import given
from hypothesis import strategies as st

from agent.surfaces.http.limits import RateLimiter


def test_a_minutes_worth_may_be_spent_at_once_and_fills_again() -> None:
    rates = RateLimiter(60)
    assert [rates.acquire("ana", 0.0) for _ in range(60)] == [0.0] * 60
    assert rates.acquire("ana", 0.0) == 1.0
    assert rates.acquire("ana", 0.5) == 0.5
    assert rates.acquire("ana", 1.0) == 0.0
    assert rates.acquire("ana", 1.0) > 0


def test_one_key_spends_nothing_of_anothers() -> None:
    rates = RateLimiter(1)
    assert rates.acquire("ana", 0.0) == 0.0
    assert rates.acquire("ben", 0.0) == 0.0
    assert rates.acquire("ana", 0.0) > 0


def test_none_is_no_limit() -> None:
    rates = RateLimiter(0)
    assert not any(rates.acquire("ana", 0.0) for _ in range(1000))


@given(st.integers(1, 100), st.lists(st.floats(0, 5), max_size=60))
def test_never_more_than_twice_a_minutes_worth_pass_within_a_minute(
    a_minute: int, pauses: list[float]
) -> None:
    rates, now, passed = RateLimiter(a_minute), 0.0, []
    for pause in pauses:
        now += pause
        if not rates.acquire("ana", now):
            passed.append(now)
    for start in passed:
        assert sum(start <= at < start + 60 for at in passed) <= 2 * a_minute


@given(st.integers(1, 1000), st.floats(0, 1000))
def test_who_waits_as_long_as_is_said_gets_in(a_minute: int, start: float) -> None:
    rates = RateLimiter(a_minute)
    for _ in range(a_minute):
        rates.acquire("ana", start)
    wait = rates.acquire("ana", start)
    assert wait > 0
    assert rates.acquire("ana", start + wait + 1e-6) == 0.0
