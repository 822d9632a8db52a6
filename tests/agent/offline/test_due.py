from datetime import UTC, datetime

import pytest

from agent.offline.due import dated, due, now_in

SATURDAY_NIGHT = datetime(2026, 11, 21, 22, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("call mum tomorrow", "2026-11-22 09:00"),
        ("call mum tomorrow at 5pm", "2026-11-22 17:00"),
        ("call mum at 5:30 pm on Monday", "2026-11-23 17:30"),
        ("call mum on Saturday", "2026-11-28 09:00"),
        ("call mum tomorrow evening", "2026-11-22 20:00"),
        ("call mum at 23:15", "2026-11-21 23:15"),
        ("call mum at 7am", "2026-11-22 07:00"),
        ("call mum at 12am tomorrow", "2026-11-22 00:00"),
        ("call mum in 20 minutes", "2026-11-21 22:28"),
        ("call mum in two weeks", "2026-12-05 22:08"),
        ("appeler maman demain à 17h30", "2026-11-22 17:30"),
        ("appeler maman dans trois jours", "2026-11-24 22:08"),
        ("appeler maman lundi", "2026-11-23 09:00"),
        ("להתקשר לאמא מחר", "2026-11-22 09:00"),
    ],
)
def test_a_moment_is_read(text: str, expected: str) -> None:
    moment = due(text, SATURDAY_NIGHT)
    assert moment is not None
    assert moment.strftime("%Y-%m-%d %H:%M") == expected
    assert moment.tzinfo is UTC


@pytest.mark.parametrize("text", ["call mum", "buy 2 breads", "call in some days", "call in 5 boxes"])
def test_without_a_moment_nothing_falls_due(text: str) -> None:
    assert due(text, SATURDAY_NIGHT) is None


def test_without_a_clock_nothing_falls_due_and_days_keep_their_words() -> None:
    assert due("call mum tomorrow", None) is None
    assert dated("I fly tomorrow", None) == "I fly tomorrow"


def test_the_moment_is_in_the_instructions() -> None:
    assert now_in("Hi\nNow: Saturday 21 November 2026, 22:08 UTC\nbye") == SATURDAY_NIGHT
    assert now_in("Now: 41 Nonsense 2026, 22:08") is None
    assert now_in("know: nothing") is None


def test_a_time_of_day_is_that_of_the_zone_and_summer_time_is_known() -> None:
    in_paris = now_in("Now: Sunday 25 October 2026, 00:30 (Europe/Paris, UTC+02:00)")
    assert in_paris is not None
    for text, expected in (
        ("call mum at 9", "2026-10-25T09:00:00+01:00"),
        ("call mum tomorrow", "2026-10-26T09:00:00+01:00"),
        ("call mum in 2 hours", "2026-10-25T02:30:00+02:00"),
        ("call mum in 3 hours", "2026-10-25T02:30:00+01:00"),
        ("call mum in one day", "2026-10-26T00:30:00+01:00"),
    ):
        moment = due(text, in_paris)
        assert moment is not None
        assert moment.isoformat() == expected


def test_days_that_pass_are_written_as_dates() -> None:
    assert dated("I fly tomorrow, not yesterday", SATURDAY_NIGHT) == "I fly on 2026-11-22, not on 2026-11-20"
    assert dated("je pars demain", SATURDAY_NIGHT) == "je pars le 2026-11-22"
    assert dated("tomorrow's exam", SATURDAY_NIGHT) == "tomorrow's exam"
