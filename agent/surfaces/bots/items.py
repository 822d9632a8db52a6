"""What is remembered and what is to do, as lines with buttons."""

from datetime import datetime, tzinfo

from agent.surfaces.bots.answers import DELETE, DONE, EDIT, MAKE_PRIVATE, Button, Item
from agent.surfaces.bots.receipts import Receipt, until
from memory.audience import Place, user_key
from memory.records import Memory, Task
from memory.sql.memories import tellers
from memory.zones import in_zone

LONGEST_LINE = 300
"""Characters of a memory or task in a list."""


def short(text: str) -> str:
    """On one line, cut where it gets long."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 2]} …"


def memory_item(memory: Memory, user: str, now: datetime, zone: tzinfo) -> Item:
    """Somebody else's is theirs to take away."""
    theirs = user_key(user) in tellers(memory.owners, memory.user_id)
    buttons = (Button("Forget", DELETE, memory.id),) if theirs else ()
    said = f"{in_zone(memory.created_at, zone):%Y-%m-%d}"
    return Item(short(memory.content), f"{said}{until(memory.expires_at, now, zone)}", buttons)


def receipt_item(receipt: Receipt, place: Place, now: datetime, zone: tzinfo | None) -> Item:
    note = until(receipt.expires_at, now, zone).strip()
    buttons = [Button("Undo", receipt.undo, receipt.id), Button("Edit", EDIT, receipt.id)]
    if not place.private:
        buttons.append(Button("Make private", MAKE_PRIVATE, receipt.id))
    return Item(short(receipt.content), note, tuple(buttons))


def task_item(task: Task, zone: tzinfo) -> Item:
    due = f"due {in_zone(task.due, zone):%Y-%m-%d %H:%M}" if task.due else ""
    state = "in progress" if task.status == "in_progress" else ""
    note = ", ".join(filter(None, (state, due)))
    return Item(short(task.description), note, (Button("Done", DONE, task.id),))
