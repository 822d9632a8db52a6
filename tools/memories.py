"""The tools that search memory and add to it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import tzinfo
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from memory.errors import NotFound, StoreUnavailable
from memory.process.spans import note_rows
from memory.records import DEFAULT_IMPORTANCE, Decision, Memory, MemoryType, NewMemory, Task
from memory.text import one_line, tags
from memory.text.quoting import SHORT_ID, read_id, short_ids
from memory.text.ttl import read_ttl
from prompts.echo import is_echo
from tools.context import TurnContext
from tools.failures import ToolFailed, TryAgain
from tools.lookup import cut, find, newest


def none_if_blank(value: Any) -> Any:
    """Read blank text, "null" and "none" as None."""
    return None if isinstance(value, str) and value.strip().lower() in {"", "null", "none"} else value


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def without_default(schema: dict[str, Any]) -> None:
    """Drop the default from an argument's schema, which every request contains."""
    schema.pop("default", None)


MOST_TASKS = 50
LONGEST_OLD = 200
"""Maximum characters of a fact that a model reads before it replaces it."""
PAUSES = (0.5, 2.0)
"""Seconds between attempts to write, while the database is busy or cannot be reached."""
NOT_STORED = "this was not stored, since the database does not answer; say so, and do not call again for it"

T = TypeVar("T")

Subjects = Annotated[tuple[str, ...], AfterValidator(tags)]
Blank = Annotated[str | None, BeforeValidator(none_if_blank)]
Limit = Annotated[int, Field(ge=1, le=100, json_schema_extra=without_default)]
Since = Annotated[Blank, Field(description="a day: 2026-03-09")]
Until = Annotated[Blank, Field(description="a day")]
Author = Annotated[Blank, Field(description='who said it; "hachi" is you')]
OfKind = Annotated[Literal["memory", "message", "summary"] | None, BeforeValidator(none_if_blank)]


async def search_memories(
    turn: TurnContext,
    query: Annotated[str, Field(max_length=2000)] = "",
    subjects: Annotated[Subjects, Field(description="tags")] = (),
    limit: Limit = 40,
    since: Since = None,
    until: Until = None,
    author: Author = None,
    kind: OfKind = None,
) -> dict[str, Any]:
    """Search facts and messages in their own words and language; without a query,
    the newest. A list is an excerpt: time, lines; ~ marks those around a hit."""
    if turn.user is None:
        return {"memories": [], "note": "this person is anonymous: nothing is remembered of them"}
    return await find(
        turn.reader, query, limit, subjects=subjects, since=since, until=until, author=author, kind=kind
    )


async def get_recent_memories(
    turn: TurnContext,
    limit: Limit = 10,
) -> dict[str, Any]:
    """List the newest facts and all open tasks; also for "what do you remember?"."""
    if turn.user is None:
        return {"memories": [], "note": "this person is anonymous: nothing is remembered of them"}
    listed = await newest(turn.reader, limit)
    tasks = (await turn.tasks.list(turn.user, turn.place))[:MOST_TASKS]
    note_rows(task.id for task in tasks)
    return listed | {"open_tasks": [_task(task, turn.zone) for task in tasks]}


async def remember(
    turn: TurnContext,
    content: Annotated[str, Field(min_length=1, description="one sentence")],
    subjects: Annotated[Subjects, Field(default=(), description="lower-case tags, names among them")],
    ttl: Annotated[
        str | None,
        BeforeValidator(_as_text),
        Field(default=None, description="1h, 7d (an illness); null for good (a sister)"),
    ],
    type: Annotated[MemoryType, Field(json_schema_extra=without_default)] = "fact",
    importance: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            description="0.3 low, 0.6 medium, 0.9 high (an allergy)",
            json_schema_extra=without_default,
        ),
    ] = DEFAULT_IMPORTANCE,
    replaces: Annotated[
        str | None,
        BeforeValidator(none_if_blank),
        BeforeValidator(_as_text),
        Field(description="bracketed id of the memory it corrects or completes"),
    ] = None,
) -> dict[str, Any]:
    """Store one fact now. If it corrects one in `close`, call again with its id as `replaces`."""
    if turn.user is None:
        raise ToolFailed("this person is anonymous: nothing can be remembered of them")
    if is_echo(content, turn.rendered):
        raise TryAgain(
            "content: this is a sentence of your instructions; pass what the person said, if anything"
        )
    new_memory = NewMemory(content, subjects, ttl, type, importance)
    if replaces is not None:
        old = await _corrected(turn, replaces)
        new_memory = replace(new_memory, replaces=old.id)
        await _ask_again(turn, turn.user, new_memory, old)
    [decision] = await stored(lambda: turn.writer.remember([new_memory], turn.origin()))
    turn.decisions.append(decision)
    answer = _decided(decision)
    if not read_ttl(ttl).understood:
        answer["note"] = f"ttl {ttl!r} cannot be read, so it is kept for good; use a form such as 7d"
    return answer


async def _corrected(turn: TurnContext, written: str) -> Memory:
    """Return the fact to correct. Raises TryAgain if the reader has no fact with this id."""
    try:
        return await turn.recall.memory(read_id(written), turn.audience)
    except NotFound as error:
        raise TryAgain(
            f"replaces: no memory {written[:80]!r}; give an id that you were shown, or null"
        ) from error


async def _ask_again(turn: TurnContext, user: str, new_memory: NewMemory, old: Memory) -> None:
    """Raise TryAgain with the old fact's text, but only once, if the two have no words in common: the id may
    be wrong."""
    asked = (old.id, new_memory.content)
    if asked in turn.asked_again or await turn.writer.similar.related(new_memory, old, user):
        return
    turn.asked_again.add(asked)
    raise TryAgain(
        f"replaces: [{old.id[:SHORT_ID]}] is {cut(one_line(old.content), LONGEST_OLD)!r}, which is about"
        " something else; give the id of what this corrects, or null; call again so only if that is over"
    )


async def stored(write: Callable[[], Awaitable[T]]) -> T:
    """Write, and retry while the database is busy or cannot be reached. Raises ToolFailed."""
    for pause in PAUSES:
        with suppress(StoreUnavailable):
            return await write()
        await asyncio.sleep(pause)
    try:
        return await write()
    except StoreUnavailable as error:
        raise ToolFailed(NOT_STORED) from error


def _task(task: Task, zone: tzinfo) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": task.id[:SHORT_ID], "description": task.description, "status": task.status}
    return shown | ({"due": task.due.astimezone(zone).isoformat(timespec="minutes")} if task.due else {})


def _decided(decision: Decision) -> dict[str, Any]:
    near = [memory.id for memory in decision.close]
    ids = short_ids([*near, *([decision.id] if decision.id else [])])
    return {
        "action": decision.action,
        "id": ids[decision.id] if decision.id else None,
        "content": decision.content,
        "reason": decision.reason,
        "expires_at": decision.expires_at.isoformat(timespec="minutes") if decision.expires_at else None,
        "close": [{"id": ids[memory.id], "content": memory.content} for memory in decision.close],
    }
