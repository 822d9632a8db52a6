"""A file is read by its ending and its first bytes, however its letters are written."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.documents.formats.blocks import UnreadableDocument
from memory.documents.formats.parse import decode, parse

HELLO = "Grüße, שלום, 你好, café"


def first(name: str, data: bytes) -> str:
    return parse(name, data).blocks[0].text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_unicode_is_read_by_its_byte_order_mark(encoding: str) -> None:
    assert decode(("\ufeff" + HELLO).encode(encoding)) == HELLO
    if encoding != "utf-8":
        with pytest.raises(UnreadableDocument, match="binary"):
            decode(HELLO.encode(encoding))


def test_a_page_that_names_its_encoding_is_read_in_it() -> None:
    page = '<meta charset="windows-1255"><p>שלום</p>'
    assert first("a.html", page.encode("cp1255")) == "שלום"
    assert first("a.html", page.encode()) == "שלום", "UTF-8 shows by itself"
    assert first("a.html", '<meta charset="nonsense"><p>café</p>'.encode("cp1252")) == "café"
    assert decode("Grüße aus Köln".encode("latin-1")) == "Grüße aus Köln", "what is no UTF-8 is Latin"
    assert decode("“café”".encode("cp1252")) == "“café”"
    assert decode(b"caf\xe9 \x81") == "café \x81"


def test_a_pdf_is_known_by_its_first_bytes(make_pdf: Callable[..., bytes]) -> None:
    assert first("report", make_pdf("Tea")) == "page 1"
    with pytest.raises(UnreadableDocument, match="broken PDF"):
        parse("report.pdf", b"no such thing")
    assert parse("making tea.txt", b"Boil.").title == "making tea", "without a title it bears the file's name"
    assert parse("a.md", b"# Making\n\nBoil.").title == "Making"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(100), "binary"),
        (bytes(range(1, 256)) * 20, "binary"),
        (b"\xff\xfe\x00\xd8\x00", "begins like UTF-16LE"),
        *(
            (text.encode(encoding), "save it as UTF-8")
            for text, encoding in (
                ("Отпуск: двадцать дней.", "cp1251"),
                ("חופשה של עשרים ימים", "cp1255"),
                ("每年有十天年假。", "big5"),
                ("有給休暇は年に二十日です。", "shift_jis"),
            )
        ),
        (b"<!-- nothing -->", "holds no text"),
    ],
)
def test_what_is_no_document_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableDocument, match=reason):
        parse("a.md", data)


def test_letters_that_no_database_takes_are_left_out() -> None:
    parsed = parse("a.html", b"<title>A&#xD800;</title><ul><li>b&#xDFFF;c&#0;</li></ul>")
    for text in (parsed.title, parsed.blocks[0].text, *parsed.blocks[0].parts):
        text.encode()
        assert "\x00" not in text


@given(st.binary())
def test_any_bytes_are_text_that_a_database_takes_or_refused(data: bytes) -> None:
    try:
        text = decode(data)
    except UnreadableDocument:
        return
    assert "\x00" not in text
    text.encode()
