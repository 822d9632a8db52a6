"""Splitting long texts: nothing is lost, and nothing is cut in two that belongs together."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.surfaces.bots.splitting import close_code_block, split, utf16_length

WORDS = (
    *"Lucie est allergique. אלרגית לאגוזים. 她对坚果过敏。 🇫🇷🇮🇱 क्षि".split(),
    "👩\u200d👩\u200d👧\u200d👦",
    "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "e\u0301te\u0301",
)
"""Letters of several scripts, and signs that are several letters."""

prose = st.lists(st.sampled_from([*WORDS, "\n", "\n\n", " ", ". "]), max_size=80).map(" ".join)
code = st.lists(st.sampled_from(["x = 1\n", "    if y:\n", "\n", "z" * 150 + "\n"]), max_size=30).map("".join)
mixed = st.lists(
    st.one_of(prose, code.map(lambda lines: f"\n```py\n{lines}```\n"), st.just("`a`")), max_size=6
).map("".join)
limits = st.integers(100, 400)


def letters(text: str) -> str:
    return re.sub(r"\s", "", text)


@given(st.one_of(prose, st.text(max_size=600).filter(lambda text: "```" not in text)), limits)
def test_nothing_is_lost_and_everything_fits(text: str, limit: int) -> None:
    parts = split(text, limit)
    assert letters("".join(parts)) == letters(text)
    assert all(utf16_length(part) <= limit for part in parts)
    assert all(part.strip() for part in parts)


@settings(max_examples=50)
@given(mixed, limits)
@example("```py\n" + "x = 1\n" * 90, 100)
def test_code_stays_inside_blocks_that_each_part_closes(text: str, limit: int) -> None:
    parts = split(close_code_block(text), limit)
    assert all(part.count("```") % 2 == 0 and utf16_length(part) <= limit for part in parts)
    inside = [line for part in split(text, limit) for line in "".join(part.split("```")[1::2]).splitlines()]
    kept = "".join(line for line in inside if line != "py")
    blocks = close_code_block(text).split("```")[1::2]
    assert kept == "".join(line for block in blocks for line in block.splitlines() if line != "py")


@settings(max_examples=50)
@given(mixed, mixed, limits)
def test_parts_stay_the_same_when_the_text_grows(text: str, more: str, limit: int) -> None:
    """All but the last, which is still growing."""
    before, after = split(text, limit), split(text + more, limit)
    assert after[: max(0, len(before) - 1)] == before[:-1]


@pytest.mark.parametrize("sign", ["👍🏽", "🇫🇷", "👩‍👧", "e\u0301"])
def test_a_grapheme_stays_whole_wherever_a_part_is_full(sign: str) -> None:
    for before in range(4):
        parts = split("x" * before + sign * 100, 100)
        assert [part.lstrip("x").replace(sign, "") for part in parts] == [""] * len(parts)


def test_a_fence_stays_with_its_code_and_contains_shorter_fences() -> None:
    empty = "words " * 15 + "\n```js\n" + "let x = 1;\n" * 10 + "```"
    assert split(empty, 110)[0] == "words " * 15 + "\n"
    assert all("x" in part for part in split("```\n" + "x" * 150 + "\n```", 110))
    closing = "```\n" + "x" * 83 + "\n```\nafter that there is more to read"
    assert split(closing, 100) == ["```\n" + "x" * 83 + "\n```\n", "after that there is more to read"]
    parts = split("````md\n```py\n" + "x = 1\n" * 30 + "```\n````\nend", 120)
    assert all(part.startswith("````md\n") for part in parts[1:])
    assert parts[-1].endswith("````\nend")


def test_backticks_within_a_line_are_no_fence() -> None:
    text = "Write ``` to begin a block. " + "words " * 30 + "\n```py\nx = 1\n```\n" + "more " * 30
    parts = split(text, 120)
    assert letters("".join(parts)) == letters(text)
    assert sum("x = 1" in part for part in parts) == 1
    assert not any(part.startswith("```") for part in split("x" * 97 + " ``` " + "words " * 20, 100))
    assert split("a " * 40 + "``` b\n" + "c " * 40, 100)[1].startswith("c ")


def test_lengths_are_utf16_code_units_and_a_limit_leaves_room() -> None:
    assert utf16_length("a👍") == 3
    assert [utf16_length(part) for part in split("👍" * 75, 100)] == [90, 60]
    assert all(len(part) <= 100 for part in split("e" + "\u0301" * 249, 100))
    assert split("hello", 100) == ["hello"]
    assert split("", 100) == split(" \n ", 100) == []


def test_an_open_code_block_is_closed() -> None:
    assert close_code_block("see\n```py\nx = 1") == "see\n```py\nx = 1\n```"
    assert close_code_block("see\n```py\nx = 1\n") == "see\n```py\nx = 1\n```"
    assert close_code_block("see ```x```") == "see ```x```"
    assert close_code_block("see `x") == "see `x"
