"""What documents may be called."""

import pytest

from memory.documents import document_name


@pytest.mark.parametrize(
    "name", ["notes.md", "  notes.md ", "Über uns (2).pdf", "noch.ein.name", "README", ".env"]
)
def test_the_name_of_a_file_is_a_name(name: str) -> None:
    assert document_name(name) == name.strip()


@pytest.mark.parametrize(
    "name",
    ["", "  ", ".", "..", "a/b.md", "/etc/passwd", "a\\b.md", "a\nb.md", "a\x00.md", "\ud800", "x" * 201],
)
def test_a_path_or_what_is_no_line_is_none(name: str) -> None:
    with pytest.raises(ValueError, match=r"such as notes\.md"):
        document_name(name)
