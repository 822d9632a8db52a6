from datetime import UTC, datetime, timedelta

import pytest

from agent.errors import BadInput
from agent.tracing.store.filters import read_duration, read_place, read_seconds, read_since

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


def test_times_and_places_are_read():
    seconds = {"90s": 90, "500ms": 0.5, "1.5h": 5400, "2 d": 172_800, "1w": 604_800}
    assert {text: read_seconds(text) for text in seconds} == seconds
    assert read_duration("3") is None
    assert (read_seconds("2"), read_seconds("0ms")) == (2.0, 0.0)
    assert read_since("2h", NOW) == NOW - timedelta(hours=2)
    assert read_since("2026-01-10T09:30+02:00", NOW) == datetime(2026, 1, 10, 7, 30, tzinfo=UTC)
    assert (read_place("dm"), read_place("acme")) == ("", "place:acme")


def test_what_is_no_time_is_refused():
    for text in ("yesterday", "999999w", "10000-01-01"):
        with pytest.raises(BadInput, match="is not a time such as"):
            read_since(text, NOW)
    with pytest.raises(BadInput, match="is not a duration"):
        read_seconds("soon")
