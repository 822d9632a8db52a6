"""Markdown to blocks. A block's text is its source, so code and tables stay as they are."""

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
_CODE = {"fence", "code_block"}
_LISTS = {"bullet_list_open", "ordered_list_open"}
_COMMENT = re.compile(r"\s*<!--.*?-->\s*", re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_ANCHOR = re.compile(r"\s*\{[#:.][^{}]*\}\s*$")
"""``{#anchor}`` or ``{: .class }`` after a heading, an extension of several renderers."""


def parse(text: str) -> Parsed:
    """Return the blocks. The title is that of the front matter, or the first heading of level 1."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    title = ""
    if front_matter := _FRONT_MATTER.match(text):
        text = text[front_matter.end() :]
        if found := _TITLE.search(front_matter[1] or ""):
            title = found[2].strip()
    blocks = tuple(_blocks(_parser().parse(text), text.split("\n")))
    first = next((block.text for block in blocks if block.kind == "heading" and block.level == 1), "")
    return Parsed(title or first, blocks)


def _blocks(tokens: "Sequence[Token]", lines: Sequence[str]) -> Iterator[Block]:
    for at, token in enumerate(tokens):
        if token.level or token.map is None or token.type == "hr":
            continue
        source = _source(token, lines)
        if token.type == "html_block":
            source = _COMMENT.sub("\n", source).strip()
        if token.type == "heading_open":
            if heading := _plain(tokens[at + 1]):
                yield Block("heading", heading, level=int(token.tag[1:]))
        elif not source:
            continue
        elif token.type in _LISTS:
            yield Block("list", source, parts=_items(tokens[at + 1 :], lines))
        elif token.type == "table_open":
            yield Block("table", source)
        else:
            yield Block("code" if token.type in _CODE else "text", source)


def _items(tokens: "Sequence[Token]", lines: Sequence[str]) -> tuple[str, ...]:
    """Return the outermost items of the list that begins at the first of these tokens."""
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


def _plain(inline: "Token") -> str:
    """Return the words of a heading on one line, without the markup for emphasis, links and code."""
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
