"""Answers as Slack's blocks, within its limits. All text is escaped: nothing that was said does anything."""

from collections.abc import Iterable, Sequence
from typing import Any

from agent.surfaces.bots.answers import Answer, Button, Item
from agent.surfaces.bots.slack.markup import escaped

Block = dict[str, Any]

LONGEST_SECTION = 3_000
LONGEST_TEXT = 600
"""Characters of what somebody said in one block, so that a message of 50 stays readable and is taken."""
MOST_BLOCKS = 50
MOST_IN_HOME = 100
PRESSED = "hachi"
"""How the ids of our buttons begin."""
ALONE = "alone"
"""How the ids of those end whose message is about nothing else, so that it gives way to the answer."""


def answer_blocks(answer: Answer, most: int = MOST_BLOCKS) -> list[Block]:
    """As a message that is for one person only."""
    alone = len(answer.items) <= 1
    around = 1 + bool(answer.note) + bool(answer.buttons)
    return [
        section(escaped(answer.text)),
        *item_blocks(answer.items, alone)[: most - around],
        *([context(escaped(answer.note))] if answer.note else []),
        *([actions(answer.buttons, alone=True)] if answer.buttons else []),
    ]


def item_blocks(items: Iterable[Item], alone: bool = False) -> list[Block]:
    return [block for item in items for block in _item(item, alone)]


def receipt_blocks(items: Sequence[Item]) -> tuple[str, list[Block]]:
    """What a turn remembered: the plain text, and the blocks."""
    shown = [Item(item.text, item.note, item.buttons, "Remembered") for item in items]
    text = "; ".join(_line(item) for item in shown)
    return cut(text, LONGEST_SECTION), item_blocks(shown, len(shown) == 1)[:MOST_BLOCKS]


def plain_answer(answer: Answer) -> str:
    """For notifications, and where blocks are not shown."""
    lines = [escaped(answer.text), *(_line(item) for item in answer.items), escaped(answer.note)]
    return cut("\n".join(line for line in lines if line), LONGEST_SECTION)


def section(text: str, button: Block | None = None) -> Block:
    """`text` is escaped already."""
    block: Block = {"type": "section", "text": {"type": "mrkdwn", "text": cut(text, LONGEST_SECTION) or "…"}}
    return block | ({"accessory": button} if button else {})


def header(text: str) -> Block:
    return {"type": "header", "text": {"type": "plain_text", "text": text[:150]}}


def context(text: str) -> Block:
    """`text` is escaped already."""
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": cut(text, LONGEST_SECTION)}]}


def actions(buttons: Sequence[Button], *, alone: bool = False) -> Block:
    return {"type": "actions", "elements": [_button(button, alone) for button in buttons[:25]]}


def confirmed(button: Button, question: str) -> Block:
    """One button that Slack itself asks about before it counts."""
    asking = {
        "title": {"type": "plain_text", "text": button.label[:100]},
        "text": {"type": "plain_text", "text": question[:300]},
        "confirm": {"type": "plain_text", "text": button.label[:30]},
        "deny": {"type": "plain_text", "text": "Cancel"},
        "style": "danger",
    }
    return {"type": "actions", "elements": [_button(button, alone=True) | {"confirm": asking}]}


def cut(text: str, limit: int) -> str:
    """Escaped text of at most so many characters; no `&amp;` is cut in two."""
    if len(text) <= limit:
        return text
    start = text[: limit - 2]
    mark = start.rfind("&")
    if mark >= 0 and ";" not in start[mark:] and len(start) - mark < 6:
        start = start[:mark]
    return f"{start} …"


def _item(item: Item, alone: bool) -> list[Block]:
    only = _button(item.buttons[0], alone) if len(item.buttons) == 1 else None
    block = section(_line(item), only)
    return [block, actions(item.buttons, alone=alone)] if len(item.buttons) > 1 else [block]


def _line(item: Item) -> str:
    label = f"*{escaped(item.label)}:* " if item.label else ""
    note = f"  _{escaped(item.note)}_" if item.note else ""
    return f"{label}{cut(escaped(item.text), LONGEST_TEXT)}{note}"


def _button(button: Button, alone: bool) -> Block:
    block: Block = {
        "type": "button",
        "text": {"type": "plain_text", "text": button.label[:75]},
        "action_id": ".".join([PRESSED, button.action, *([ALONE] if alone else [])]),
    }
    if button.value:
        block["value"] = button.value
    return block | ({"style": "danger"} if button.style == "danger" else {})
