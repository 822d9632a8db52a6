"""HTML to Markdown to blocks: the text that a visitor reads, without menus and scripts."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memory.documents.formats import markdown, plain_text
from memory.documents.formats.blocks import Block, Parsed, UnreadableDocument

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_NO_TEXT = "title, script, style, noscript, template, svg, canvas, iframe, object, button, select, input"
_MENUS = (
    "nav, [role=navigation], [role=banner], [role=contentinfo], [role=search], [role=complementary], [hidden]"
)
_PAGE_FRAME = "header, footer, aside"
_PERMALINKS = frozenset({"¶", "#", "§", "🔗", "\uf0c1"})
_XML_DECLARATION = re.compile(r"\A\s*<\?xml.*?\?>", re.DOTALL)
_CODE = re.compile(r"(```.*?```|`[^`\n]+`)", re.DOTALL)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def parse(text: str) -> Parsed:
    """Return the blocks of the page, with the page's title. Raises UnreadableDocument."""
    from bs4 import BeautifulSoup

    if "<" not in text:
        return plain_text.parse(text)
    soup = BeautifulSoup(_XML_DECLARATION.sub("", text), "html.parser")
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    try:
        parsed = markdown.parse(_to_markdown(_main_part(soup)))
    except RecursionError:
        raise UnreadableDocument("its elements are nested too deeply; save it as a simpler page") from None
    return Parsed(title or parsed.title, tuple(map(_unescape_block, parsed.blocks)))


def declared_encoding(data: bytes) -> str | None:
    """Return the encoding that a page declares in its first kilobyte."""
    from bs4.dammit import EncodingDetector

    return EncodingDetector.find_declared_encoding(data[:1024], is_html=True)


def _main_part(soup: "BeautifulSoup") -> "Tag":
    """Return the main part of the page. Everything else is removed from it."""
    from bs4.element import PreformattedString

    for comment in soup.find_all(string=lambda found: isinstance(found, PreformattedString)):
        comment.extract()
    for tag in soup.select(_NO_TEXT):
        tag.decompose()
    page = soup.select_one("main, [role=main]") or soup.body or soup
    for tag in page.select(_MENUS):
        tag.decompose()
    for tag in page.select(_PAGE_FRAME):
        # The <header> of an article may hold its heading.
        if not tag.decomposed and tag.find_parent(["article", "main", "section"]) is None:
            tag.decompose()
    for tag in page.select("a"):
        if tag.get_text().strip() in _PERMALINKS:
            tag.decompose()
    return page


def _to_markdown(page: "Tag") -> str:
    from markdownify import MarkdownConverter

    converter = MarkdownConverter(
        heading_style="ATX",
        bullets="-",
        strip=["a", "img"],
        escape_misc=True,
        code_language_callback=_language,
    )
    text: str = converter.convert_soup(page)
    return text


def _language(tag: Any) -> str | None:
    """Return the language of a code block, if its class or that of the <code> inside declares one."""
    classes = [*(tag.get("class") or ()), *((tag.code and tag.code.get("class")) or ())]
    return next((name[9:] for name in classes if name.startswith("language-")), None)


def _unescape_block(block: Block) -> Block:
    """Remove the backslashes that kept the page's punctuation from being parsed as Markdown."""
    if block.kind in {"heading", "code"}:
        return block
    return replace(block, text=_unescape(block.text), parts=tuple(map(_unescape, block.parts)))


def _unescape(text: str) -> str:
    parts = enumerate(_CODE.split(text))
    return "".join(part if at % 2 else _ESCAPED.sub(r"\1", part) for at, part in parts)
