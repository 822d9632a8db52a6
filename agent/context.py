"""What the model gets to see: labelled sections in a fixed order, the part that never changes first.

`build_messages_for_model` is pure: the same scene gives the same bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.audience import Place
from memory.records import Message, Task
from prompts import read, render

MAX_TASKS = 10
"""Open tasks that are shown; the newest."""
LONGEST_LINE = 300
"""Characters of a name, a place or a task that are shown."""


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a prompt is made of."""

    now: datetime
    speaker: str
    place: Place
    history: Sequence[Message]
    """The last messages of this conversation, oldest first, without the new one."""
    text: str
    """What was said now."""
    tasks: Sequence[Task] = ()


def build_messages_for_model(scene: Scene) -> list[dict[str, str]]:
    """`{"role", "content"}` messages: one of the system, the history, the question last."""
    sections = [read("assistant"), _tasks(scene), _setting(scene)]
    system = "\n\n".join(section for section in sections if section)
    history = [_turn(message.role, message.author, message.text, scene.place) for message in scene.history]
    return [
        {"role": "system", "content": system},
        *history,
        _turn("user", scene.speaker, scene.text, scene.place),
    ]


def _setting(scene: Scene) -> str:
    where = "a private conversation" if scene.place.private else f"{scene.place}, where others read along"
    now = scene.now.strftime("%A %d %B %Y, %H:%M UTC")
    return render("setting", now=now, speaker=_line(scene.speaker), where=_line(where))


def _tasks(scene: Scene) -> str:
    if not scene.tasks:
        return ""
    lines = [_task(task) for task in scene.tasks[:MAX_TASKS]]
    return "\n".join(["## Open tasks of the person speaking", *lines])


def _task(task: Task) -> str:
    due = f", due {task.due:%Y-%m-%d %H:%M} UTC" if task.due else ""
    return f"- [task {task.id}] {_line(task.description)} ({task.status}{due})"


def _turn(role: str, author: str, text: str, place: Place) -> dict[str, str]:
    """In a shared place each message says who spoke."""
    named = role == "user" and not place.private
    return {"role": role, "content": f"{_line(author)}: {text}" if named else text}


def _line(text: str) -> str:
    """What people call themselves, their places and their tasks stays a line: it begins no section."""
    return " ".join(text.split())[:LONGEST_LINE]
