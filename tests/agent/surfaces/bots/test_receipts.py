"""What was remembered, and until when."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from agent.surfaces.bots.receipts import Receipt, receipts_of, until
from memory.records import Decision

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ahead", "told"),
    [
        (None, ""),
        (timedelta(hours=2), " until 11:30"),
        (timedelta(hours=-2), " until 07:30"),
        (timedelta(days=1), " until tomorrow, 09:30"),
        (timedelta(days=3), " until Tuesday"),
        (timedelta(days=6), " until Friday"),
        (timedelta(days=7), " until 28 November"),
        (timedelta(days=60), " until 20 January 2027"),
    ],
)
def test_times_are_told_as_people_tell_them(ahead: timedelta | None, told: str) -> None:
    assert until(None if ahead is None else NOW + ahead, NOW, UTC) == told


def test_days_are_those_of_the_persons_zone() -> None:
    late = datetime(2026, 11, 21, 23, 30, tzinfo=UTC)
    assert until(late, NOW, UTC) == " until 23:30"
    assert until(late, NOW, ZoneInfo("Europe/Paris")) == " until tomorrow, 00:30"


def test_only_what_is_new_has_a_receipt() -> None:
    decisions = [
        Decision("Ana likes tea", "add", "1", "new"),
        Decision("Ana moved to Lyon", "replace", "2", "it changed", target_id="0"),
        Decision("Ana likes tea!", "ignore", "1", "known word for word"),
        Decision("Ana likes green tea", "merge", "1", "the same"),
        Decision("hm", "ignore", None, "of no importance"),
    ]
    assert receipts_of(decisions) == (
        Receipt("Ana likes tea", "1", None, "delete"),
        Receipt("Ana moved to Lyon", "2", None, "undo"),
    )
