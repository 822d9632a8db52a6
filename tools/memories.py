"""Looking into memory and adding to it."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from datetime import tzinfo
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from memory.errors import StoreUnavailable
from memory.facts.compare import normalise
from memory.facts.ttl import read_ttl
from memory.records import DEFAULT_IMPORTANCE, Decision, Draft, MemoryType, Task
from memory.text.short_ids import SHORT_ID, read_id, short_ids
from memory.text.tags import tags
from tools.context import TurnContext
from tools.failures import ToolFailed
from tools.found import find, newest


def _as_list(value: Any) -> Any:
    """Models often give one tag as a string, or several with commas."""
    if isinstance(value, str):
        return value.split(",")
    return [] if value is None else value


def none_if_blank(value: Any) -> Any:
    return None if isinstance(value, str) and value.strip().lower() in {"", "null", "none"} else value


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


MOST_TASKS = 50
SAID_AGAIN = 0.5
"""The share of words from which a second call says the fact of the first one again."""
PATIENCE = 3.0
"""Seconds after which a tool no longer waits for a write, and leaves it to the worker."""

T = TypeVar("T")

Subjects = Annotated[tuple[str, ...], BeforeValidator(_as_list), AfterValidator(tags)]
Blank = Annotated[str | None, BeforeValidator(none_if_blank)]
Since = Annotated[Blank, Field(description="only what was said on this day or later: 2026-03-09")]
Until = Annotated[Blank, Field(description="only what was said on this day or before it")]
Author = Annotated[Blank, Field(description='only what this person said; "hachi" for what you said')]
OfKind = Annotated[
    Literal["memory", "message", "summary"] | None,
    BeforeValidator(none_if_blank),
    Field(description="only facts (memory), messages or summaries"),
]
Limit = Annotated[int, Field(ge=1, le=100, description="how many at most; over 40 makes the result longer")]


async def search_memories(
    turn: TurnContext,
    query: Annotated[
        str,
        BeforeValidator(lambda query: query or ""),
        Field(max_length=2000, description="what to look for, in words; empty for the newest"),
    ] = "",
    subjects: Annotated[Subjects, Field(description="only facts with one of these tags; empty for all")] = (),
    limit: Limit = 40,
    since: Since = None,
    until: Until = None,
    author: Author = None,
    kind: OfKind = None,
) -> dict[str, Any]:
    """Search what was said and learned before: facts and past messages, by meaning and words, best first.
    Messages come as excerpts of conversations, each a list of its time and its lines; lines that begin with ~
    were not found but stand around one that was, and may be cut. `told_by` says who told a fact in a shared
    place. Times are by the person's clock. `more` says how much else matches. What you said yourself comes up
    with `author` "hachi" alone. Without a query, or with `since` or `until` alone, it lists the newest; a
    search that finds nothing says so and adds the `newest`."""
    if turn.user is None:
        return {"memories": [], "note": "this person is anonymous: nothing is remembered of them"}
    return await find(
        turn.reader, query, limit, subjects=subjects, since=since, until=until, author=author, kind=kind
    )


async def get_recent_memories(turn: TurnContext, limit: Limit = 10) -> dict[str, Any]:
    """The newest facts that you do not see yet, newest first, and all open tasks: for "what do you know about
    me?", "what do I have to do?" and to catch up."""
    if turn.user is None:
        return {"memories": [], "note": "this person is anonymous: nothing is remembered of them"}
    found = await newest(turn.reader, limit)
    tasks = await turn.tasks.list(turn.user, turn.place)
    return found | {"open_tasks": [_task(task, turn.zone) for task in tasks[:MOST_TASKS]]}


async def remember(
    turn: TurnContext,
    content: Annotated[str, Field(min_length=1, description="one sentence that names the person")],
    subjects: Annotated[
        Subjects, Field(default=(), description="lower-case tags, people's names among them")
    ],
    ttl: Annotated[
        str | None,
        BeforeValidator(_as_text),
        Field(default=None, description='how long it holds: "1h", "7d", "2w" …; null for good'),
    ],
    type: MemoryType = "fact",
    importance: Annotated[float, Field(ge=0, le=1)] = DEFAULT_IMPORTANCE,
    replaces: Annotated[
        str | None,
        BeforeValidator(none_if_blank),
        BeforeValidator(_as_text),
        Field(description="the id of the memory this corrects"),
    ] = None,
) -> dict[str, Any]:
    """Remember one fact. If it corrects a memory whose id you know, give that id as `replaces`. Answers with
    what was done (add, merge, replace or ignore) and with what is close to it: if the fact corrects one of
    those, call again with the same fact and its id as `replaces`."""
    if turn.user is None:
        raise ToolFailed("this person is anonymous: nothing can be remembered of them")
    origin, draft, before = turn.origin(), Draft(content, subjects, ttl, type, importance), None
    if replaces is not None:
        corrected = await turn.recall.memory(read_id(replaces), turn.audience)
        draft, before = replace(draft, replaces=corrected.id), _said_before(turn, content, corrected.id)
    decisions = await in_a_moment(turn.writer.remember([draft], origin))
    if decisions is None:
        await turn.accept(draft, turn.found)
        return {
            "action": "accepted",
            "id": None,
            "content": content,
            "note": "kept; it is stored in a moment",
        }
    [decision] = decisions
    if before and decision.id:
        await turn.writer.rule(decision.id, before, "replaces", origin)
    turn.decisions.append(decision)
    answer = _decided(decision)
    if not read_ttl(ttl).understood:
        answer["note"] = f"ttl {ttl!r} cannot be read, so it is kept for good; use a form such as 7d"
    return answer


async def in_a_moment(writing: Coroutine[Any, Any, T]) -> T | None:
    """What the write returns. None if it takes longer than `PATIENCE`, or if the database refuses it now."""
    task = asyncio.create_task(writing)
    try:
        await asyncio.wait([task], timeout=PATIENCE)
    finally:
        task.cancel()
    try:
        return await task
    except (StoreUnavailable, asyncio.CancelledError):
        return None


def _said_before(turn: TurnContext, content: str, corrected: str) -> str | None:
    """The id of the fact that an earlier call of this turn stored, if this one says it again: the earlier
    call was told that the corrected memory is close, and the two share most of their words."""
    words = set(normalise(content).split())
    shares = {
        str(earlier.id): len(words & said) / len(words | said)
        for earlier in turn.decisions
        if earlier.action == "add" and corrected in [memory.id for memory in earlier.close]
        if (said := set(normalise(earlier.content).split()))
    }
    best = max(shares, key=lambda id: shares[id], default=None)
    return best if best and shares[best] >= SAID_AGAIN else None


def _task(task: Task, zone: tzinfo) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": task.id[:SHORT_ID],
        "description": task.description,
        "status": task.status,
    }
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
