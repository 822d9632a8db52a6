"""Renders answers and the edit modal as Slack's blocks, within Slack's limits. All text is escaped."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent.surfaces.bots.answers import Answer, Button, Item
from agent.surfaces.bots.slack.mrkdwn import escape
from memory.facts.writer import MAX_CONTENT

Block = dict[str, Any]

MAX_SECTION = 3_000
MAX_TEXT = 600
"""Characters of people's text in one block, so that Slack accepts a message of 50 blocks."""
MAX_BLOCKS = 50
MAX_ELEMENTS = 25
ACTION = "hachi"
"""The first part of our buttons' ids."""
ALONE = "alone"
"""The last part of a button's id if the answer replaces the button's message."""
MODAL = "hachi.edited"
"""The id of the edit modal."""
_BLOCK, _INPUT = "memory", "words"


def answer_blocks(answer: Answer, limit: int = MAX_BLOCKS) -> list[Block]:
    frame = 1 + bool(answer.note) + bool(answer.buttons)
    alone = len(answer.items) <= 1 and not answer.buttons
    return [
        section(escape(answer.text)),
        *item_blocks(answer.items, alone=alone)[: limit - frame],
        *([context(escape(answer.note))] if answer.note else []),
        *([_actions(answer.buttons, alone=True)] if answer.buttons else []),
    ]


def item_blocks(items: Iterable[Item], *, alone: bool = False) -> list[Block]:
    """Return the items' blocks. A single button is beside its item; several are below it."""
    blocks: list[Block] = []
    for item in items:
        block = section(_line(item))
        if len(item.buttons) == 1:
            block["accessory"] = _button(item.buttons[0], alone)
        blocks.append(block)
        if len(item.buttons) > 1:
            blocks.append(_actions(item.buttons, alone))
    return blocks


def receipt_blocks(items: Sequence[Item]) -> tuple[str, list[Block]]:
    """Return what a turn remembered, as plain text and as blocks."""
    labelled = [Item(item.text, item.note, item.buttons, "Remembered") for item in items]
    text = "; ".join(_line(item) for item in labelled)
    return shorten(text, MAX_SECTION), item_blocks(labelled, alone=len(labelled) == 1)[:MAX_BLOCKS]


def answer_text(answer: Answer) -> str:
    """Return the text for notifications and for clients that do not show blocks."""
    lines = [escape(answer.text), *(_line(item) for item in answer.items), escape(answer.note)]
    return shorten("\n".join(filter(None, lines)), MAX_SECTION)


def section(escaped: str) -> Block:
    return {"type": "section", "text": {"type": "mrkdwn", "text": shorten(escaped, MAX_SECTION) or "…"}}


def header(text: str) -> Block:
    return {"type": "header", "text": plain(text[:150])}


def context(escaped: str) -> Block:
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": shorten(escaped, MAX_SECTION)}]}


def plain(text: str) -> Block:
    return {"type": "plain_text", "text": text}


def confirmed(button: Button, question: str) -> Block:
    """Return a button that asks for confirmation in Slack."""
    confirm = {
        "title": plain(button.label[:100]),
        "text": plain(question[:300]),
        "confirm": plain(button.label[:30]),
        "deny": plain("Cancel"),
        "style": "danger",
    }
    return {"type": "actions", "elements": [_button(button, alone=True) | {"confirm": confirm}]}


def edit_modal(text: str, metadata: str) -> Block:
    """Return the edit modal. Slack returns `metadata` with the submitted text."""
    entry = {
        "type": "plain_text_input",
        "action_id": _INPUT,
        "multiline": True,
        "initial_value": text,
        "max_length": MAX_CONTENT,
    }
    label = plain("What I am to remember")
    return {
        "type": "modal",
        "callback_id": MODAL,
        "private_metadata": metadata,
        "title": plain("Say it differently"),
        "submit": plain("Remember"),
        "close": plain("Cancel"),
        "blocks": [{"type": "input", "block_id": _BLOCK, "label": label, "element": entry}],
    }


def submitted_text(view: Mapping[str, Any]) -> str:
    return str(view["state"]["values"][_BLOCK][_INPUT].get("value") or "")


def empty_error() -> dict[str, str]:
    return {_BLOCK: "Say what I am to remember."}


def shorten(escaped: str, limit: int) -> str:
    """Cut to at most `limit` characters, without cutting an `&amp;` in two."""
    if len(escaped) <= limit:
        return escaped
    start = escaped[: limit - 2]
    mark = start.rfind("&")
    if mark >= 0 and ";" not in start[mark:] and len(start) - mark < 6:
        start = start[:mark]
    return f"{start} …"


def _line(item: Item) -> str:
    label = f"*{escape(item.label)}:* " if item.label else ""
    note = f"  _{escape(item.note)}_" if item.note else ""
    return f"{label}{shorten(escape(item.text), MAX_TEXT)}{note}"


def _actions(buttons: Sequence[Button], alone: bool) -> Block:
    return {"type": "actions", "elements": [_button(button, alone) for button in buttons[:MAX_ELEMENTS]]}


def _button(button: Button, alone: bool) -> Block:
    return {
        "type": "button",
        "text": plain(button.label[:75]),
        "action_id": ".".join([ACTION, button.action, *([ALONE] if alone else [])]),
        **({"value": button.value} if button.value else {}),
        **({"style": "danger"} if button.style == "danger" else {}),
    }
