"""The changes of a consolidation: profile entries, and the payload of the job that stores facts and tasks."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from agent.background.slice import ConversationSlice
from memory.audience import Place
from memory.facts.candidate import Provenance
from memory.facts.derived import MEMORY_SUMMARY
from memory.facts.ttl import describe
from memory.index import bm25
from memory.people.profile import Entry, MemoryUpdates, NewFact, entries_of
from memory.records import Draft, Memory, Message

IMPORTANCE = {"low": 0.3, "medium": 0.6, "high": 0.9}


@dataclass(frozen=True, slots=True)
class ExtractionResult:
    summary: str
    """The conversation's summary; empty if the model wrote none."""
    updates: MemoryUpdates
    memory_summary: str | None = None
    """The summary of the person's facts."""
    replacing: frozenset[int] = frozenset()
    """The numbers, from 1, of the slice's unclear pairs that are replacements."""


def context_entries(part: ConversationSlice, found: ExtractionResult) -> list[Entry]:
    """Return the changes to the person's profile and preferences."""
    if not part.said:
        return []
    entries = entries_of(found.updates.new_preferences, part.said[-1].sent_at)
    return [replace(entry, message_id=_said_in(part.said, entry.value)) for entry in entries]


def memory_summary(part: ConversationSlice, found: ExtractionResult) -> list[Entry]:
    """Return the new summary of the person's facts, if there is one, as an entry of the profile."""
    return [Entry(MEMORY_SUMMARY, "", found.memory_summary, part.now)] if found.memory_summary else []


def updates_payload(part: ConversationSlice, found: ExtractionResult) -> dict[str, Any] | None:
    """Return the facts, each with the message it comes from, and the tasks, as JSON values. Returns None if
    there are none."""
    if not part.said:
        return None
    facts = [_new_fact(part, fact) for fact in found.updates.new_facts]
    facts += [_replacement(*pair) for n, pair in enumerate(part.unclear, 1) if n in found.replacing]
    tasks = [task.model_dump() for task in found.updates.task_updates]
    if not (facts or tasks):
        return None
    cited = {fact["message_id"] for fact in facts}
    return {
        "place": list(part.place.path),
        "facts": facts,
        "tasks": tasks,
        "said": {message.id: message.text for message in part.said if message.id in cited},
        "found_at": part.now.isoformat(),
        "heard": part.said[-1].id,
    }


def read_fact(
    fact: dict[str, Any], said: dict[str, str], user: str, place: Place
) -> tuple[Draft, Provenance]:
    """Read a fact from the payload. `said` maps message ids to texts."""
    draft = Draft(**fact["draft"] | {"subjects": tuple(fact["draft"]["subjects"])})
    provenance = Provenance(
        user=user,
        said_at=datetime.fromisoformat(fact["said_at"]),
        place=place,
        message_id=fact["message_id"],
        said=said.get(str(fact["message_id"]), ""),
        live=True,
    )
    return draft, provenance


def _new_fact(part: ConversationSlice, fact: NewFact) -> dict[str, Any]:
    source = _source(part.said, fact.text)
    draft = Draft(fact.text, tuple(fact.tags), importance=IMPORTANCE[fact.importance])
    return {"draft": asdict(draft), "message_id": source.id, "said_at": source.sent_at.isoformat()}


def _replacement(old: Memory, new: Memory) -> dict[str, Any]:
    """Return the newer fact again, marked as a replacement of the older one."""
    ttl = describe(new.expires_at - new.created_at) if new.expires_at else None
    draft = Draft(new.content, new.subjects, ttl, new.type, new.importance, replaces=old.id)
    return {
        "draft": asdict(draft),
        "message_id": new.message_id,
        "said_at": new.created_at.isoformat(),
        "kept": new.id,
    }


def _source(said: Sequence[Message], fact: str) -> Message:
    """Return the message that shares most words with the fact; the last of equals."""
    wanted = _words(fact)
    return max(enumerate(said), key=lambda pair: (len(wanted & _words(pair[1].text)), pair[0]))[1]


def _said_in(said: Sequence[Message], value: str) -> str | None:
    """Return the id of the message that the value comes from; None if none of several shares a word with
    it."""
    source = _source(said, value)
    return source.id if len(said) == 1 or _words(value) & _words(source.text) else None


def _words(text: str) -> frozenset[int]:
    vector = bm25.query(text)
    return frozenset(vector.indices) if vector is not None else frozenset()
