import pytest
from rich.console import Console

from agent.surfaces.cli.chat.markdown import end_of_finished_blocks, rendered


def shown(text: str) -> str:
    console = Console(width=40)
    with console.capture() as capture:
        console.print(rendered(text))
    return capture.get()


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        ("one", ""),
        ("one\n\ntwo", "one\n\n"),
        ("one\n\n```\na\n\nb", "one\n\n"),
        ("```\na\n\nb\n```\n\nend", "```\na\n\nb\n```\n\n"),
        ("~~~\n```\n\n", ""),
    ],
)
def test_a_block_ends_at_a_blank_line_outside_of_code(text, finished):
    assert text[: end_of_finished_blocks(text)] == finished


def test_line_breaks_and_what_looks_like_html_stay():
    assert [line.strip() for line in shown("List<int> & 2*3\nsecond <b>line</b>").splitlines()] == [
        "List<int> & 2*3",
        "second <b>line</b>",
    ]


def test_marks_become_styles_and_the_address_of_a_link_is_told():
    text = shown("**bold**, [this](https://example.org/a)")
    assert "bold" in text
    assert "**" not in text
    assert "https://example.org/a" in text
