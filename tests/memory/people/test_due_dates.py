"""Times as people give and read them."""

import time
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.people.due_dates import YEARS, read_due, read_time

PARIS = ZoneInfo("Europe/Paris")
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TABLES = tomllib.loads((Path(__file__).parents[2] / "data" / "due_dates.toml").read_text())


@pytest.fixture
def tokyo_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This machine stands in Tokyo."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(("text", "utc"), TABLES["local"])
def test_a_time_without_an_offset_is_meant_in_the_persons_zone(text: str, utc: str) -> None:
    assert read_time(text, PARIS, NOW) == datetime.fromisoformat(utc + "+00:00")


@pytest.mark.parametrize("text", TABLES["zoned"])
def test_a_time_that_tells_its_zone_is_meant_there(text: str) -> None:
    assert read_time(text, ZoneInfo("Asia/Tokyo"), NOW) == datetime(2026, 12, 1, 10, tzinfo=UTC)


def test_a_date_alone_is_nine_in_the_morning_or_the_end_of_today_once_that_has_passed() -> None:
    for text in ("2026-12-01", "20261201", "2026-W49-2"):
        assert read_time(text, PARIS, NOW) == datetime(2026, 12, 1, 8, tzinfo=UTC)
    for hour, read in ((7, "09:00"), (8, "23:59"), (22, "23:59")):
        now = datetime(2026, 11, 21, hour, tzinfo=UTC)
        assert read_time("2026-11-21", PARIS, now).astimezone(PARIS).strftime("%d %H:%M") == f"21 {read}"


def test_today_is_the_persons_today() -> None:
    late = datetime(2026, 11, 21, 23, tzinfo=UTC)
    assert read_time("2026-11-22", ZoneInfo("Asia/Tokyo"), late) == datetime(2026, 11, 22, 0, tzinfo=UTC)
    assert read_time("2026-11-21", ZoneInfo("Asia/Tokyo"), late) == datetime(2026, 11, 21, 0, tzinfo=UTC)


def test_an_hour_that_the_clocks_skip_is_the_one_after_it_and_one_that_comes_twice_the_first() -> None:
    for written, read in (
        ("2026-03-29T02:30", "2026-03-29T03:30+02:00"),
        ("2026-10-25T02:30", "2026-10-25T02:30+02:00"),
    ):
        assert read_time(written, PARIS, NOW).astimezone(PARIS).isoformat(timespec="minutes") == read


@pytest.mark.usefixtures("tokyo_clock")
def test_without_a_zone_the_clock_of_this_machine_is_meant() -> None:
    moment = read_time("2026-12-01T10:00", None, NOW)
    assert moment == datetime(2026, 12, 1, 1, tzinfo=UTC)
    assert moment.astimezone(None).hour == 10
    assert read_time("2026-12-01", None, NOW) == datetime(2026, 12, 1, 0, tzinfo=UTC)


@pytest.mark.parametrize(("text", "local"), TABLES["english"])
def test_plain_english_is_read_by_the_persons_clock(text: str, local: str) -> None:
    assert f"{read_time(text, PARIS, NOW).astimezone(PARIS):%a %d %b %Y %H:%M}" == local


def test_never_takes_a_due_date_away() -> None:
    assert read_due(" Never ", PARIS, NOW) == "never"
    assert read_due("2026-12-01", PARIS, NOW) == datetime(2026, 12, 1, 8, tzinfo=UTC)


@pytest.mark.parametrize("text", TABLES["refused"])
def test_what_is_no_time_is_told_in_a_line_with_examples(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"is not a time that can be read; write for example 2026-01-10, "
    ) as error:
        read_time(text, PARIS, NOW)
    assert len(str(error.value).splitlines()) == 1


@given(
    st.timedeltas(timedelta(0), timedelta(days=365 * 7_000)),
    st.sampled_from(["UTC", "Europe/Paris", "America/St_Johns", "Asia/Jerusalem", "Pacific/Kiritimati"]),
)
def test_what_is_shown_is_read_back(later: timedelta, name: str) -> None:
    zone, aware = ZoneInfo(name), datetime(min(YEARS) + 1, 1, 1, tzinfo=UTC) + later
    shown = aware.astimezone(zone).isoformat()
    assert read_time(shown, PARIS, NOW) == aware
    assert read_time(shown, None, NOW).astimezone(zone).isoformat() == shown


@given(st.text())
def test_any_text_is_a_time_or_told_to_be_none(text: str) -> None:
    with suppress(ValueError):
        assert read_time(text, PARIS, NOW).utcoffset() == timedelta(0)
