"""Renders answers and receipts in Discord's Markdown."""

import re
from collections.abc import Sequence

from agent.surfaces.bots.answers import Answer, Item, ReceiptUpdate
from agent.surfaces.bots.splitting import utf16_length

LIMIT = 2_000
"""UTF-16 code units of a message."""
MAX_RECEIPTS = 5
"""Receipts of one reply. Further ones are only counted."""
_REMEMBERED = "-# Remembered"
_WIDTHS = (300, 180, 120, 60)
"""Maximum characters of an item. The largest that fits into a message is used."""
_MARKUP = re.compile(r"[\\`*~|<>\[\]]|(?<!\w)_|_(?!\w)|^[#-]", re.MULTILINE)
"""Discord's Markdown characters. A `_` inside a name or an address is not markup."""


def answer_text(answer: Answer) -> str:
    """Return at most `LIMIT` characters, with numbers for items that have buttons."""
    numbered = any(item.buttons for item in answer.items)
    text = ""
    for width in _WIDTHS:
        lines = [
            f"{f'{number}. ' if numbered else '- '}{_line(item, width)}"
            for number, item in enumerate(answer.items, start=1)
        ]
        text = "\n".join([answer.text, *lines, *([f"-# {answer.note}"] if answer.note else [])])
        if utf16_length(text) <= LIMIT:
            return text
    return text[: LIMIT // 2]


def receipt_lines(items: Sequence[Item], more: int) -> str:
    """Return the receipts below a reply, in small print."""
    lines = [f"{' '.join(filter(None, (_REMEMBERED, item.note)))}: {escape(item.text)}" for item in items]
    return "\n".join([*lines, *([f"-# … and {more} more: /memories"] if more else [])])


def update_receipt(content: str, update: ReceiptUpdate) -> str:
    """Return a message's content with a receipt's text replaced by the outcome."""
    text = escape(update.text)
    lines = [
        f"-# ({update.outcome})" if line.startswith(_REMEMBERED) and line.endswith(f": {text}") else line
        for line in content.split("\n")
    ]
    return "\n".join(lines)


def escape(text: str) -> str:
    """Escape the markup in people's text."""
    return _MARKUP.sub(r"\\\g<0>", text)


def _line(item: Item, width: int) -> str:
    label = f"**{item.label}:** " if item.label else ""
    text = item.text if item.label or len(item.text) <= width else f"{item.text[: width - 2]} …"
    return f"{label}{escape(text)}{f' ({item.note})' if item.note else ''}"
