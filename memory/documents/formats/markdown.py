"""Markdown to blocks. A block's text is what stands in the source, so code and tables stay as they are."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from memory.documents.formats.blocks import Block, Parsed

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TITLE = re.compile(r"^title[ \t]*:[ \t]*(['\"]?)(.+?)\1[ \t]*$", re.MULTILINE | re.IGNORECASE)
_KINDS = {"fence": "code", "code_block": "code", "html_block": "text", "table_open": "table"}
_LISTS = {"bullet_list_open", "ordered_list_open"}
_SILENT = re.compile(r"\s*<!--.*?-->\s*", re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_ANCHOR = re.compile(r"\s*\{[#:.][^{}]*\}\s*$")
"""``{#anchor}`` and ``{: .class }`` after a heading, as several renderers take it."""


def parse(text: str) -> Parsed:
    """Headings, paragraphs, lists, fences and tables, in their order. The title is that of the front matter,
    or the first heading of level 1."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    title = ""
    if front := _FRONT_MATTER.match(text):
        text = text[front.end() :]
        if named := _TITLE.search(front[1] or ""):
            title = named[2].strip()
    blocks = tuple(_blocks(_parser().parse(text), text.split("\n")))
    first = next((block.text for block in blocks if block.kind == "heading" and block.level == 1), "")
    return Parsed(title or first, blocks)


def _blocks(tokens: "Sequence[Token]", lines: Sequence[str]) -> Iterator[Block]:
    for at, token in enumerate(tokens):
        if token.level or token.map is None:
            continue
        if token.type == "heading_open":
            if heading := plain(tokens[at + 1]):
                yield Block("heading", heading, level=int(token.tag[1:]))
            continue
        source = _source(token, lines)
        if token.type == "html_block":
            source = _SILENT.sub("\n", source).strip()
        if not source or token.type == "hr":
            continue
        if token.type in _LISTS:
            yield Block("list", source, parts=_items(tokens[at + 1 :], lines))
        else:
            yield Block(_KINDS.get(token.type, "text"), source)  # type: ignore[arg-type]


def _items(tokens: "Sequence[Token]", lines: Sequence[str]) -> tuple[str, ...]:
    """The outermost items of the list that begins before these tokens."""
    items = []
    for token in tokens:
        if token.level == 0:
            break
        if token.type == "list_item_open" and token.level == 1 and (item := _source(token, lines)):
            items.append(item)
    return tuple(items)


def _source(token: "Token", lines: Sequence[str]) -> str:
    first, end = token.map or (0, 0)
    return "\n".join(line.rstrip() for line in lines[first:end]).strip("\n")


def plain(inline: "Token") -> str:
    """A heading's words, without the signs that make them bold, a link or code; one line."""
    words = (
        child.content if child.type in {"text", "code_inline", "image"} else " "
        for child in inline.children or ()
        if child.type in {"text", "code_inline", "image", "softbreak", "hardbreak"}
    )
    return " ".join(_TAG.sub("", _ANCHOR.sub("", "".join(words))).split())


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")
