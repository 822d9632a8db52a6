from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.search.time_ranges import time_span

NOW = datetime(2026, 11, 21, 15, tzinfo=UTC)  # a Saturday


def days(question: str) -> tuple[str, str] | None:
    """First and last day that the question speaks of."""
    span = time_span(question, NOW)
    return span and (f"{span[0]:%Y-%m-%d}", f"{span[1] - timedelta(seconds=1):%Y-%m-%d}")


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("Who did Maria have dinner with on May 3, 2023?", "2023-05-03", "2023-05-03"),
        ("the 3rd of May 2023", "2023-05-03", "2023-05-03"),
        ("on 2023-05-03", "2023-05-03", "2023-05-03"),
        ("on 3/5/2023", "2023-05-03", "2023-05-03"),
        ("on 3/14/2025", "2025-03-14", "2025-03-14"),
        ("in January 2022", "2022-01-01", "2022-01-31"),
        ("What happened in March?", "2026-03-01", "2026-03-31"),
        ("in December", "2025-12-01", "2025-12-31"),
        ("on 25 December", "2025-12-25", "2025-12-25"),
        ("in 2023", "2023-01-01", "2023-12-31"),
    ],
)
def test_a_date_is_that_day_and_a_month_or_year_the_last_begun(question: str, first: str, last: str) -> None:
    assert days(question) == (first, last)


def test_since_reaches_to_this_moment() -> None:
    for question in ("since March 2026", "since 1 March", "since the 1st of March", "since 2026-03-01"):
        assert time_span(question, NOW) == (datetime(2026, 3, 1, tzinfo=UTC), NOW)


def test_days_begin_where_the_clock_is() -> None:
    jerusalem = timezone(timedelta(hours=2))
    span = time_span("on 21 November", datetime(2026, 11, 21, 1, tzinfo=jerusalem))
    assert span == (datetime(2026, 11, 20, 22, tzinfo=UTC), datetime(2026, 11, 21, 22, tzinfo=UTC))


@pytest.mark.parametrize(
    "question",
    [
        "What are Nate's favourite desserts?",
        "May I ask what I may do?",
        "What did May say to April?",
        "last week",
        "on 30 February",
        "on 31/31/2023",
    ],
)
def test_what_is_no_date_is_none(question: str) -> None:
    assert time_span(question, NOW) is None


@given(st.text())
def test_any_question_can_be_read(question: str) -> None:
    span = time_span(question, NOW)
    assert span is None or span[0] < span[1]
