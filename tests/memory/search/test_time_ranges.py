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
    "question",
    [
        "Who did Maria have dinner with on May 3, 2023?",
        "What did she watch on 3 May, 2023?",
        "the 3rd of May 2023",
        "on 2023-05-03",
        "le 3/5/2023",
        "le 3.5.2023",
        "Qu'a-t-on dit le 3 mai 2023 ?",
        "מה אמרתי ב-3 במאי 2023?",
    ],
)
def test_a_date_is_that_day(question: str) -> None:
    assert days(question) == ("2023-05-03", "2023-05-03")


def test_figures_are_day_first_unless_that_cannot_be() -> None:
    assert days("on 3/14/2025") == ("2025-03-14", "2025-03-14")


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("in January 2022", "2022-01-01", "2022-01-31"),
        ("Dec. 2022", "2022-12-01", "2022-12-31"),
        ("What happened in March?", "2026-03-01", "2026-03-31"),
        ("in December", "2025-12-01", "2025-12-31"),
        ("on 25 December", "2025-12-25", "2025-12-25"),
        ("on 8 May", "2026-05-08", "2026-05-08"),
        ("en mars", "2026-03-01", "2026-03-31"),
        ("au mois d'août", "2026-08-01", "2026-08-31"),
        ("במרץ", "2026-03-01", "2026-03-31"),
        ("בחודש מאי", "2026-05-01", "2026-05-31"),
        ("in 2023", "2023-01-01", "2023-12-31"),
        ("en 2023", "2023-01-01", "2023-12-31"),
        ("ב-2023", "2023-01-01", "2023-12-31"),
    ],
)
def test_a_month_or_year_is_the_last_one_that_has_begun(question: str, first: str, last: str) -> None:
    assert days(question) == (first, last)


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What did I say today?", "2026-11-21", "2026-11-21"),
        ("this morning", "2026-11-21", "2026-11-21"),
        ("what did I say yesterday", "2026-11-20", "2026-11-20"),
        ("last night", "2026-11-20", "2026-11-20"),
        ("the day before yesterday", "2026-11-19", "2026-11-19"),
        ("hier soir", "2026-11-20", "2026-11-20"),
        ("avant-hier", "2026-11-19", "2026-11-19"),
        ("אתמול", "2026-11-20", "2026-11-20"),
        ("מאתמול", "2026-11-20", "2026-11-20"),
        ("שלשום", "2026-11-19", "2026-11-19"),
        ("three days ago", "2026-11-18", "2026-11-18"),
        ("il y a deux jours", "2026-11-19", "2026-11-19"),
        ("לפני יומיים", "2026-11-19", "2026-11-19"),
        ("a week ago", "2026-11-11", "2026-11-17"),
        ("לפני שבוע", "2026-11-11", "2026-11-17"),
        ("a year ago", "2025-01-01", "2025-12-31"),
        ("il y a un an", "2025-01-01", "2025-12-31"),
        ("last week", "2026-11-09", "2026-11-15"),
        ("la semaine dernière", "2026-11-09", "2026-11-15"),
        ("בשבוע שעבר", "2026-11-09", "2026-11-15"),
        ("this week", "2026-11-16", "2026-11-22"),
        ("cette semaine", "2026-11-16", "2026-11-22"),
        ("מה עשיתי השבוע?", "2026-11-16", "2026-11-22"),
        ("le mois dernier", "2026-10-01", "2026-10-31"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("last Friday", "2026-11-20", "2026-11-20"),
        ("on Saturday", "2026-11-14", "2026-11-14"),
        ("lundi dernier", "2026-11-16", "2026-11-16"),
        ("ביום שני", "2026-11-16", "2026-11-16"),
        ("in the last 3 days", "2026-11-18", "2026-11-21"),
        ("ces trois derniers jours", "2026-11-18", "2026-11-21"),
        ("ב-3 הימים האחרונים", "2026-11-18", "2026-11-21"),
        ("since Monday", "2026-11-16", "2026-11-21"),
        ("depuis le mois dernier", "2026-10-01", "2026-11-21"),
    ],
)
def test_days_are_counted_back_from_now(question: str, first: str, last: str) -> None:
    assert days(question) == (first, last)


def test_the_last_month_of_january_is_december() -> None:
    span = time_span("last month", datetime(2026, 1, 5, tzinfo=UTC))
    assert span == (datetime(2025, 12, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))


def test_days_begin_where_the_clock_is() -> None:
    jerusalem = timezone(timedelta(hours=2))
    span = time_span("today", datetime(2026, 11, 21, 1, tzinfo=jerusalem))
    assert span == (
        datetime(2026, 11, 20, 22, tzinfo=UTC),
        datetime(2026, 11, 21, 22, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    "question",
    [
        "What are Nate's favourite desserts?",
        "May I ask what I may do?",
        "We march on",
        "Elle a mis des mars au frigo",
        "il m'a dit un jour",
        "מה אמרתי על הכתף?",
        "9999 years ago",
        "on 31/31/2023",
    ],
)
def test_what_is_no_date_is_none(question: str) -> None:
    assert time_span(question, NOW) is None


@given(st.text())
def test_any_question_can_be_read(question: str) -> None:
    span = time_span(question, NOW)
    assert span is None or span[0] < span[1]
