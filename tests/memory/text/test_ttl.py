from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.ttl import LONGEST, Ttl, describe, read_ttl

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


READ = {
    HOUR: ["1h"],
    7 * DAY: ["7d", "7-day", "P7D", "７ｄ", "a week"],
    14 * DAY: ["2w"],
    timedelta(minutes=1): ["PT1M"],
    timedelta(minutes=3): ["3min", "3 MINUTES", "PT3M"],
    timedelta(minutes=90): ["90m", "1,5 h", "1h30m", "1H 30M", "1 hour and 30m"],
    36 * HOUR: ["1d12h", "P1DT12H", "  1 Day AND 12 Hours. "],
    30 * DAY: ["1mo", "P1M"],
    90 * DAY: ["for 3 months", "3M", "3 M", "For 3 M", "３Ｍ", "3mo", "3Mo"],
    365 * DAY: ["1y", "1Y"],
    (365 + 180) * DAY: ["1y6m", "1Y 6M"],
    3 * DAY: [timedelta(days=3)],
}


@pytest.mark.parametrize(("text", "duration"), [(text, long) for long in READ for text in READ[long]])
def test_a_duration_is_read_however_it_is_written(text, duration):
    assert read_ttl(text) == Ttl(duration, True)


@pytest.mark.parametrize("text", ["1m", "3m", "18 m", "36m", "60 m", "2d 6m", "1.5m", "1,500 h", "1.000d"])
def test_what_may_be_one_thing_or_another_is_kept_for_ever(text):
    assert read_ttl(text) == Ttl(None, False)


@pytest.mark.parametrize("text", [None, "", "  ", "null", "None", "NEVER", "permanent"])
def test_saying_that_it_does_not_expire_is_understood(text):
    assert read_ttl(text) == Ttl(None, True)


UNCLEAR = [*"0 -7d 86400 soon 7 7d7 P PT P0D 101y 1e9d".split(), "9" * 5000 + "d", "one dwarf", "no idea"]
NO_TEXTS = [0, 86400, 1.5, True, ["7d"], timedelta(0), -DAY, 200 * 365 * DAY]


@pytest.mark.parametrize("value", [*UNCLEAR, "deux semaines", "\U00010a40 d", *NO_TEXTS])
def test_what_is_no_clear_duration_is_kept_for_ever(value):
    assert read_ttl(value) == Ttl(None, False)


@given(
    st.one_of(st.text(), st.integers(), st.floats(), st.binary(), st.from_regex(r"[0-9]{1,12} ?[a-z]{1,6}"))
)
def test_nothing_is_ever_born_expired(value):
    read = read_ttl(value)
    assert read.duration is None or timedelta(0) < read.duration <= LONGEST
    assert read.understood or read.duration is None


@given(st.integers(1, int(LONGEST.total_seconds())))
def test_a_description_reads_back_as_the_same_duration(seconds):
    duration = timedelta(seconds=seconds)
    assert read_ttl(describe(duration)) == Ttl(duration, True)


@pytest.mark.parametrize(
    ("duration", "words"),
    [
        (None, "for ever"),
        (14 * DAY, "2 weeks"),
        (36 * HOUR, "1 day 12 hours"),
        (timedelta(seconds=61), "1 minute 1 second"),
        (timedelta(milliseconds=1), "1 second"),
    ],
)
def test_durations_are_described_in_words(duration, words):
    assert describe(duration) == words
