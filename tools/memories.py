"""Looking into memory and adding to it."""

from datetime import tzinfo
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from memory.facts.ttl import read_ttl
from memory.records import DEFAULT_IMPORTANCE, Decision, Draft, Hit, Memory, MemoryType, Task
from tools.context import TurnContext
from tools.failures import ToolFailed


def _as_list(value: Any) -> Any:
    """Models often give one tag as a string, or several with commas."""
    if isinstance(value, str):
        return value.split(",")
    return [] if value is None else value


def _flat(tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag.strip().lower() for tag in tags if tag.strip()))


def none_if_blank(value: Any) -> Any:
    return None if isinstance(value, str) and value.strip().lower() in {"", "null", "none"} else value


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


MOST_TASKS = 50
SHORT = 8
"""Characters of an id that name a task."""
LONGEST_HIT = 1_500
"""Characters of one thing found that the model is shown."""

Subjects = Annotated[tuple[str, ...], BeforeValidator(_as_list), AfterValidator(_flat)]
Limit = Annotated[int, Field(ge=1, le=50, description="how many at most")]


async def search_memories(
    turn: TurnContext,
    query: Annotated[str, Field(min_length=1, max_length=2000, description="what to look for, in words")],
    subjects: Annotated[Subjects, Field(description="only facts with one of these tags; empty for all")] = (),
    limit: Limit = 10,
) -> dict[str, Any]:
    """Search what was said and learned before: facts and past messages, by meaning and words, best first."""
    if turn.user is None:
        return {"memories": [], "note": "this person is anonymous: nothing is remembered of them"}
    aliases = await turn.recall.aliases(turn.audience)
    hits = await turn.recall.search(
        query, turn.audience, limit=limit, subjects=subjects, exclude=turn.shown, aliases=aliases
    )
    found = _found(turn, hits)
    if names := aliases.others(query):
        found["also_known_as"] = list(names)
    return found


async def get_recent_memories(
    turn: TurnContext, limit: Annotated[Limit, Field(default=10)]
) -> dict[str, Any]:
    """The newest facts that were learned, newest first, and all open tasks: for "what do you know about me?",
    "what do I have to do?" and to catch up."""
    if turn.user is None:
        return {"memories": [], "note": "this person is anonymous: nothing is remembered of them"}
    found = _found(turn, await turn.recall.recent(turn.audience, limit))
    if tasks := await turn.tasks.list(turn.user, turn.place):
        found["open_tasks"] = [_task(task, turn.zone) for task in tasks[:MOST_TASKS]]
    return found


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
        str | None, BeforeValidator(none_if_blank), Field(description="the id of the memory this corrects")
    ] = None,
) -> dict[str, Any]:
    """Remember one fact. Answers with what was done (add, merge, replace or ignore) and with what is close to
    it: if the fact corrects one of those, call again with its id as `replaces`."""
    if turn.user is None:
        raise ToolFailed("this person is anonymous: nothing can be remembered of them")
    if replaces is not None:
        replaces = (await turn.recall.memory(replaces, turn.audience)).id
    draft = Draft(content, subjects, ttl, type, importance, replaces)
    [decision] = await turn.writer.remember([draft], turn.origin())
    turn.decisions.append(decision)
    answer = _decided(decision)
    if not read_ttl(ttl).understood:
        answer["note"] = f"ttl {ttl!r} cannot be read, so it is kept for good; use a form such as 7d"
    return answer


def _found(turn: TurnContext, hits: list[Hit]) -> dict[str, Any]:
    turn.recalled.extend(hits)
    if not hits:
        note = "nothing beyond what is before you already" if turn.shown else "nothing found"
        return {"memories": [], "note": note}
    return {"memories": [_shown(hit) for hit in hits]}


def _task(task: Task, zone: tzinfo) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": task.id[:SHORT],
        "description": task.description,
        "status": task.status,
    }
    return shown | ({"due": task.due.astimezone(zone).isoformat(timespec="minutes")} if task.due else {})


def _shown(hit: Hit) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": hit.id,
        "kind": hit.kind,
        "content": excerpt(hit.content),
        "created_at": hit.created_at.isoformat(timespec="minutes"),
        "score": round(hit.score, 2),
    }
    if hit.author:
        shown["author"] = hit.author
    if hit.memory:
        shown["subjects"] = list(hit.memory.subjects)
        if hit.memory.expires_at:
            shown["expires_at"] = hit.memory.expires_at.isoformat(timespec="minutes")
    return shown


def excerpt(text: str) -> str:
    """A pasted page that a search brings back is not to fill the prompt."""
    if len(text) <= LONGEST_HIT:
        return text
    return f"{text[:LONGEST_HIT]} … ({len(text) - LONGEST_HIT:,} more characters)"


def _decided(decision: Decision) -> dict[str, Any]:
    return {
        "action": decision.action,
        "id": decision.id,
        "content": decision.content,
        "reason": decision.reason,
        "expires_at": decision.expires_at.isoformat(timespec="minutes") if decision.expires_at else None,
        "close": [_near(memory) for memory in decision.close],
    }


def _near(memory: Memory) -> dict[str, str]:
    return {"id": memory.id, "content": memory.content}
