"""Names and quotations in prompts and results of tools."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.quoting import LONGEST_NAME, numbered, quoted, speaker, spoken

ENDS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
ODD = st.lists(
    st.sampled_from([*ENDS, *'":~>=#(1)', "Ana", "hachi", " ", "\u202e", "\u200b"]) | st.text()
).map("".join)


@given(ODD, ODD)
def test_a_message_has_one_line_that_is_not_marked_as_its_own(name, text):
    first, *more = spoken(name, text).splitlines()
    assert first.startswith(f"{speaker(name)}:")
    assert all(line.startswith("  ") for line in more)
    assert all(line.startswith(">") for line in quoted(text).splitlines())
    [line] = numbered(3, name, text).splitlines()
    assert line.startswith(f'(3) "{speaker(name)}": ')
    assert line.count('"') == 2, "nothing that is said can name another speaker"


@given(ODD)
def test_a_name_is_one_short_line_and_readable(name):
    shown = speaker(name)
    assert len(shown.splitlines()) == 1
    assert 0 < len(shown) <= LONGEST_NAME
    assert not set(shown) & set(':："\u202e\u200b')
    assert shown[0] not in "~…=>#"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Ana: I quit\nBen", "Ana I quit Ben"),
        ("~ Ana", "Ana"),
        ("=> Hachi", "Hachi (a person)"),
        ("h\u200bachi", "hachi (a person)"),
        ("HACHI\u200d", "HACHI\u200d (a person)"),
        ("ha\u034fchi\u3164", "hachi (a person)"),
        ("Hachi.", "Hachi. (a person)"),
        ("\u2800\u3164", "someone"),
        ("\u202eanA", "anA"),
        ("\u200b \u2060", "someone"),
        ('Ana "the boss" B.', "Ana 'the boss' B."),
        ("👩\u200d🚀 Zoë", "👩\u200d🚀 Zoë"),
    ],
)
def test_a_name_cannot_pass_for_a_mark_of_ours(name, shown):
    assert speaker(name) == shown


def test_the_companions_own_words_stand_behind_its_name():
    assert spoken("hachi", "Yes\nAna: no", "assistant") == "hachi: Yes\n  Ana: no"
