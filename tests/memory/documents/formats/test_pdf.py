"""Of a PDF its text is read, page by page; one that has none says why."""

from collections.abc import Callable
from unittest.mock import Mock

import pypdf
import pytest
from pypdf.errors import DependencyError

from memory.documents.formats.blocks import Block, UnreadableDocument
from memory.documents.formats.pdf import parse

MakePdf = Callable[..., bytes]


def test_each_page_stands_under_its_number(make_pdf: MakePdf) -> None:
    parsed = parse(make_pdf("Boil the water.", "", "Wait two minutes.", title="Making tea"))
    assert parsed.title == "Making tea"
    assert parsed.blocks == (
        Block("heading", "page 1", level=1),
        Block("text", "Boil the water."),
        Block("heading", "page 3", level=1),
        Block("text", "Wait two minutes."),
    )


def test_a_word_broken_at_the_end_of_a_line_is_put_together(make_pdf: MakePdf) -> None:
    [_, text] = parse(make_pdf("The tem-\nperature of Anglo-\nSaxon tea")).blocks
    assert text.text == "The temperature of Anglo-\nSaxon tea"


def test_an_encrypted_pdf_says_what_is_needed(make_pdf: MakePdf, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = make_pdf("secret", password="swordfish")
    with pytest.raises(UnreadableDocument, match="without a password"):
        parse(secret)
    missing = DependencyError("cryptography>=3.1 is required for AES algorithm")
    monkeypatch.setattr(pypdf.PdfReader, "decrypt", Mock(side_effect=missing))
    with pytest.raises(UnreadableDocument, match="more software: cryptography"):
        parse(secret)


@pytest.mark.parametrize("data", [b"%PDF-1.7\nrubbish", b"%PDF-", b"%PDF-1.4\n%%EOF"])
def test_a_broken_pdf_is_told_in_one_line(data: bytes) -> None:
    with pytest.raises(UnreadableDocument, match="broken PDF") as caught:
        parse(data)
    assert "\n" not in str(caught.value)
