"""The line of a message that says what its pictures show."""

import pytest

from agent.types.client import description_in, with_description, without_description


@pytest.mark.parametrize("text", ["", "Look!", "Look!\n[picture cat.jpg]", "Ends in\n"])
def test_a_description_is_added_replaced_and_taken_away(text: str) -> None:
    described = with_description(text, "a cat\n  [grey]")
    line = "[the picture shows: a cat [grey]]"
    assert (described, description_in(described)) == (f"{text}\n{line}".lstrip("\n"), line)
    assert without_description(described) == text
    assert description_in(with_description(described, "a dog")) == "[the picture shows: a dog]"
    assert with_description(text, " \n") == text


def test_a_description_stands_at_the_end_alone() -> None:
    quoted = "He wrote\n[the picture shows: a cat]\nand left"
    assert (without_description(quoted), description_in(quoted)) == (quoted, "")
