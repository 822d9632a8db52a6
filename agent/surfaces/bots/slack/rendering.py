"""Slack's markup, and answers as Slack's blocks, within Slack's limits.

Slack interprets `<…>` in posted text: `<!channel>` notifies everybody, `<https://…|…>` hides a link's
target. A model's reply may contain any of it, so it is escaped. People's text is in `rich_text` blocks: Slack
shows it as it is, whatever markup it resembles, and times by the reader's clock.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from agent.surfaces.bots.answers import Answer, Button, Item, Link, Words
from agent.surfaces.bots.platform import moment

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_TOKEN = re.compile(r"<([^<>\n]+)>")
_USER = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>")
_UNNAMED = re.compile(r"<(?:#|!subteam\^)([A-Z0-9]+)\|?>")
"""A channel or a group of people without its name."""
_SPECIAL = re.compile(r"https?://[^\s<>]*|^ {0,3}>|([&<>])", re.MULTILINE)
_CODE = re.compile(
    r"^ {0,3}(`{3,}|~{3,})[^`\n]*$.*?(?:^ {0,3}\1[`~]*[^\S\n]*$|\Z)|(?<!`)(`+)(?!`)[^\n]+?(?<!`)\2(?!`)",
    re.MULTILINE | re.DOTALL,
)
"""A block of code, which may still be open, or code within a line."""
_CUT = re.compile(r"(?:&[^;\s]{0,4}|<[^>]*)$")
"""An `&amp;` or a time that is cut in two."""
_DATE = "{date_short_pretty} at {time}"
_NOTIFIES = re.compile(r"<(?=!(?:here|channel|everyone|subteam)\b|@[UW][A-Z0-9])")


def escape(text: str) -> str:
    """Escape for `mrkdwn` and plain text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_markdown(text: str) -> str:
    """Escape for Slack's Markdown. Code stays as it is, apart from what would notify people, and so do the
    `&` of addresses and the `>` of quotations."""
    parts, end = [], 0
    for code in _CODE.finditer(text):
        parts += [_escape_text(text[end : code.start()]), _NOTIFIES.sub("&lt;", code[0])]
        end = code.end()
    return "".join([*parts, _escape_text(text[end:])])


def _escape_text(text: str) -> str:
    return _SPECIAL.sub(lambda found: _ESCAPES[found[1]] if found[1] else found[0], text)


def markdown_blocks(text: str) -> list[dict[str, Any]]:
    """Return the blocks of a reply. Beside them its text is given too, for notifications."""
    return [{"type": "markdown", "text": text}]


def mentioned_users(text: str) -> list[str]:
    """Return the ids of the people that the text mentions, in order."""
    return _USER.findall(text)


def unnamed(text: str) -> list[str]:
    """Return the ids of channels and groups of people that stand in the text without their names."""
    return _UNNAMED.findall(text)


def readable_text(text: str, names: Mapping[str, str]) -> str:
    """Return the message as its author saw it. `names` maps ids of people, channels and groups."""
    readable = _TOKEN.sub(lambda found: _readable(found[1], names), text)
    return readable.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def _readable(token: str, names: Mapping[str, str]) -> str:
    target, _, label = token.partition("|")
    if target.startswith("@"):
        return f"@{names.get(target[1:]) or label or target[1:]}"
    if target.startswith("#"):
        return f"#{label or names.get(target[1:]) or target[1:]}"
    if target.startswith("!"):
        kind, _, id = target[1:].partition("^")
        if kind == "date":
            return label or moment(id.partition("^")[0])
        return label or f"@{names.get(id, 'a group') if id else kind}"
    address = target.removeprefix("mailto:")
    return f"{label} ({address})" if label and label not in address else address


Block = dict[str, Any]

MAX_TEXT = 600
"""Characters of people's text in one block, so that Slack accepts a message of 50 blocks."""
MAX_ANSWER, MAX_FALLBACK = 3_000, 3_000
MAX_BLOCKS = 50
MAX_ELEMENTS = 25
ACTION = "hachi"
"""The first part of our buttons' ids."""
REPLACES = "replaces"
"""The last part of a button's id if the answer replaces the button's message."""


def answer_blocks(answer: Answer, to: str = "") -> list[Block]:
    """Return the blocks of an answer. `to` is the id of somebody to mention first."""
    replaces = len(answer.items) <= 1 and not answer.buttons
    note = [_text(_words(answer.note, MAX_ANSWER, italic=True))] if answer.note else []
    buttons = [_actions(answer.buttons, replaces=True)] if answer.buttons else []
    items = _items(answer.items, replaces)[: MAX_BLOCKS - 1 - len(note) - len(buttons)]
    mention = [{"type": "user", "user_id": to}, *_words((" ",), 1)] if to else []
    return [_text([*mention, *_words((answer.text or "…",), MAX_ANSWER)]), *items, *note, *buttons]


def answer_text(answer: Answer) -> str:
    """Return the text for notifications and for clients that do not show blocks."""
    lines = [escape(answer.text), *(_line(item) for item in answer.items), _escaped(answer.note)]
    return shorten("\n".join(filter(None, lines)), MAX_FALLBACK) or "…"


def _label(text: str) -> Block:
    return {"type": "plain_text", "text": text}


def shorten(escaped: str, limit: int) -> str:
    """Cut to at most `limit` characters, without cutting an `&amp;` or a time in two."""
    if len(escaped) <= limit:
        return escaped
    return f"{_CUT.sub('', escaped[: limit - 2])} …"


def _items(items: Iterable[Item], replaces: bool) -> list[Block]:
    blocks: list[Block] = []
    for item in items:
        label = _words((f"{item.label}: ",), MAX_TEXT, bold=True) if item.label else []
        note = _words(("  ", *item.note), MAX_TEXT, italic=True) if item.note else []
        blocks.append(_text([*label, *_words((item.text or "…",), MAX_TEXT), *note]))
        if item.buttons:
            blocks.append(_actions(item.buttons, replaces))
    return blocks


def _text(elements: list[Block]) -> Block:
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}


def _words(words: Words, limit: int, **style: bool) -> list[Block]:
    return [_word(word, limit, style) for word in words if word]


def _word(word: str | datetime, limit: int, style: dict[str, bool]) -> Block:
    if isinstance(word, Link):
        return {"type": "link", "url": word, "text": "open"}
    if isinstance(word, str):
        text = word if len(word) <= limit else f"{word[: limit - 2]} …"
        return {"type": "text", "text": text} | ({"style": style} if style else {})
    return {
        "type": "date",
        "timestamp": int(word.timestamp()),
        "format": _DATE,
        "fallback": f"{word:%Y-%m-%d %H:%M %Z}",
    }


def _escaped(words: Words) -> str:
    return "".join(
        escape(word)
        if isinstance(word, str)
        else f"<!date^{int(word.timestamp())}^{_DATE}|{word:%Y-%m-%d %H:%M %Z}>"
        for word in words
    )


def _line(item: Item) -> str:
    label = f"{item.label}: " if item.label else ""
    text = escape(f"{label}{item.text[:MAX_TEXT]}")
    return f"{text} ({_escaped(item.note)})" if item.note else text


def _actions(buttons: Sequence[Button], replaces: bool) -> Block:
    return {"type": "actions", "elements": [_button(button, replaces) for button in buttons[:MAX_ELEMENTS]]}


def _button(button: Button, replaces: bool) -> Block:
    return {
        "type": "button",
        "text": _label(button.label[:75]),
        "action_id": ".".join([ACTION, button.action, *([REPLACES] if replaces else [])]),
        **({"value": button.value} if button.value else {}),
        **({"style": "danger"} if button.style == "danger" else {}),
    }
