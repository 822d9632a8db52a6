"""What the index shows of a row, as a point without vectors and the text of its own vector."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from memory.index import Point
from memory.index.windows import LIMIT, Window
from memory.records import Memory
from memory.sql.message_rows import Line
from memory.sql.summaries import ActiveConversation

Embed = Callable[[Sequence[str]], Awaitable[Sequence[Any]]]


class Draft(NamedTuple):
    point: Point
    """Without vectors."""
    text: str
    """What its own vector is made of."""
    window: str | None = None
    """What the vector of its window is made of."""


def of_memory(memory: Memory) -> Draft:
    point = Point(
        id=memory.id,
        kind="memory",
        owners=memory.owners,
        text=memory.content,
        dense=None,
        created_at=memory.created_at,
        expires_at=memory.expires_at,
        subjects=memory.subjects,
    )
    return Draft(point, memory.content)


def of_summary(conversation: ActiveConversation) -> Draft:
    point = Point(
        id=conversation.id,
        kind="summary",
        owners=frozenset({conversation.owner}),
        text=conversation.summary,
        dense=None,
        created_at=conversation.updated_at,
    )
    return Draft(point, conversation.summary)


def of_message(line: Line, window: Window | None = None) -> Draft:
    message = line.message
    point = Point(
        id=message.id,
        kind="message",
        owners=line.owners,
        text=message.text[:LIMIT],
        dense=None,
        created_at=message.sent_at,
        window_text=window and window.words,
    )
    return Draft(point, message.text, window and window.meaning)


async def with_vectors(drafts: Sequence[Draft], embed: Embed) -> list[Point]:
    """The points, complete. Raises what `embed` raises."""
    windows = [draft for draft in drafts if draft.window is not None]
    texts = [draft.text for draft in drafts] + [str(draft.window) for draft in windows]
    vectors = await embed(texts)
    of_windows = {d.point.id: v for d, v in zip(windows, vectors[len(drafts) :], strict=True)}
    return [
        replace(draft.point, dense=vector, window_dense=of_windows.get(draft.point.id))
        for draft, vector in zip(drafts, vectors[: len(drafts)], strict=True)
    ]
