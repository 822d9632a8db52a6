"""A bucket of tokens for each key."""

from hypothesis import given
from hypothesis import strategies as st

from agent.surfaces.http.rates import Rates


def test_a_minutes_worth_may_be_spent_at_once_and_fills_again() -> None:
    rates = Rates(60)
    assert [rates.spend("ana", 0.0) for _ in range(60)] == [0.0] * 60
    assert rates.spend("ana", 0.0) == 1.0
    assert rates.spend("ana", 0.5) == 0.5
    assert rates.spend("ana", 1.0) == 0.0
    assert rates.spend("ana", 1.0) > 0


def test_one_key_spends_nothing_of_anothers() -> None:
    rates = Rates(1)
    assert rates.spend("ana", 0.0) == 0.0
    assert rates.spend("ben", 0.0) == 0.0
    assert rates.spend("ana", 0.0) > 0


def test_none_is_no_limit() -> None:
    rates = Rates(0)
    assert not any(rates.spend("ana", 0.0) for _ in range(1000))


@given(st.integers(1, 100), st.lists(st.floats(0, 5), max_size=60))
def test_never_more_than_twice_a_minutes_worth_pass_within_a_minute(
    a_minute: int, pauses: list[float]
) -> None:
    rates, now, passed = Rates(a_minute), 0.0, []
    for pause in pauses:
        now += pause
        if not rates.spend("ana", now):
            passed.append(now)
    for start in passed:
        assert sum(start <= at < start + 60 for at in passed) <= 2 * a_minute


@given(st.integers(1, 1000), st.floats(0, 1000))
def test_who_waits_as_long_as_is_said_gets_in(a_minute: int, start: float) -> None:
    rates = Rates(a_minute)
    for _ in range(a_minute):
        rates.spend("ana", start)
    wait = rates.spend("ana", start)
    assert wait > 0
    assert rates.spend("ana", start + wait + 1e-6) == 0.0
