"""The changes of a consolidation: profile entries, and the payload of the job that stores facts and tasks."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from agent.background.slice import ConversationSlice
from memory.audience import Place
from memory.facts.candidate import Provenance
from memory.facts.derived import MEMORY_SUMMARY
from memory.facts.rulings import Ruling
from memory.index import bm25
from memory.people.memory_updates import MemoryUpdates, NewFact, entries_of
from memory.people.profile_entries import Entry
from memory.records import Draft, Message
from memory.text.short_ids import SHORT_ID, read_id

IMPORTANCE = {"low": 0.3, "medium": 0.6, "high": 0.9}


@dataclass(frozen=True, slots=True)
class FactRuling:
    """What the model ruled that one fact does to another."""

    new: str
    """A short id, or the number in `new_facts` as ``#1``."""
    old: str
    """A short id."""
    ruling: Ruling


@dataclass(frozen=True, slots=True)
class ExtractionResult:
    summary: str
    """The conversation's summary; empty if the model wrote none."""
    updates: MemoryUpdates
    memory_summary: str | None = None
    """The summary of the person's facts."""
    rulings: tuple[FactRuling, ...] = ()
    faults: tuple[str, ...] = ()
    """Which values of the answer could not be read, and why."""


def context_entries(part: ConversationSlice, found: ExtractionResult) -> list[Entry]:
    """Return the changes to the person's profile and preferences."""
    if not part.said:
        return []
    entries = entries_of(found.updates.new_preferences, part.said[-1].sent_at)
    return [replace(entry, message_id=_said_in(part, entry.value)) for entry in entries]


def memory_summary(part: ConversationSlice, found: ExtractionResult) -> list[Entry]:
    """Return the new summary of the person's facts, if there is one, as an entry of the profile."""
    return [Entry(MEMORY_SUMMARY, "", found.memory_summary, part.now)] if found.memory_summary else []


def updates_payload(part: ConversationSlice, found: ExtractionResult) -> dict[str, Any] | None:
    """Return the facts, each with the message it comes from, and the tasks, as JSON values. Returns None if
    there are none."""
    if not part.said:
        return None
    on_new, on_stored = _rulings(part, found)
    new = found.updates.new_facts
    facts = [_new_fact(part, fact) | {"ruled": on_new.get(fact.number, {})} for fact in new]
    tasks = [task.model_dump() for task in found.updates.task_updates]
    if not (facts or tasks or on_stored):
        return None
    cited = {fact["message_id"] for fact in facts}
    return {
        "place": list(part.place.path),
        "facts": facts,
        "rulings": on_stored,
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
        shown=frozenset(fact.get("shown", ())),
    )
    return draft, provenance


def _new_fact(part: ConversationSlice, fact: NewFact) -> dict[str, Any]:
    source = _source(part.said, fact.text)
    draft = Draft(
        fact.text,
        tuple(fact.tags),
        fact.ttl,
        importance=IMPORTANCE[fact.importance],
        replaces=_named(fact.replaces or "", _ids(part)),
    )
    shown = sorted({message.id for message in (*part.messages, *part.earlier)} | part.facts)
    origin = {"message_id": source.id, "said_at": source.sent_at.isoformat(), "shown": shown}
    return {"draft": asdict(draft)} | origin


def _rulings(
    part: ConversationSlice, found: ExtractionResult
) -> tuple[dict[int, dict[str, Ruling]], list[tuple[str, str, Ruling]]]:
    """Return the rulings on new facts, by the fact's number and the older fact's id, and those on two stored
    facts, as (new, old, ruling). Skips those that name nothing that the prompt showed."""
    shown = _ids(part)
    on_new: dict[int, dict[str, Ruling]] = {}
    on_stored: list[tuple[str, str, Ruling]] = []
    for one in found.rulings:
        new, old = _named(one.new, shown), _named(one.old, shown)
        number = one.new.strip().removeprefix("#")
        if old and one.new.strip() != number and number.isdecimal():
            on_new.setdefault(int(number), {})[old] = one.ruling
        elif old and new:
            on_stored.append((new, old, one.ruling))
    return on_new, on_stored


def replaced_facts(part: ConversationSlice, found: ExtractionResult) -> frozenset[str]:
    """Return the ids of facts that the model ruled to be replaced: what it wrote does not rest on them."""
    on_new, on_stored = _rulings(part, found)
    pairs = [pair for ruled in on_new.values() for pair in ruled.items()]
    pairs += [(old, ruling) for _, old, ruling in on_stored]
    corrected = (_named(fact.replaces or "", _ids(part)) for fact in found.updates.new_facts)
    return frozenset(
        [*(old for old, ruling in pairs if ruling == "replaces"), *(id for id in corrected if id)]
    )


def _ids(part: ConversationSlice) -> list[str]:
    """Return the ids of the facts that the model may correct."""
    return [memory.id for memory in (*part.stored, *part.near, *part.known.long_term_facts)]


def _named(written: str, ids: Sequence[str]) -> str | None:
    """Return the one id that begins so."""
    short = read_id(written)
    found = [
        id for id in dict.fromkeys(ids) if id == short or (len(short) >= SHORT_ID and id.startswith(short))
    ]
    return found[0] if len(found) == 1 else None


def _source(said: Sequence[Message], fact: str) -> Message:
    """Return the message that shares most words with the fact; the last of equals."""
    wanted = _words(fact)
    return max(enumerate(said), key=lambda pair: (len(wanted & _words(pair[1].text)), pair[0]))[1]


def _said_in(part: ConversationSlice, value: str) -> str | None:
    """Return the id of the message that the value comes from, or that a known fact came from which the model
    repeats. None if it cannot be told."""
    source, words = _source(part.said, value), _words(value)
    if words & _words(source.text):
        return source.id
    if fact := next((fact for fact in part.shown if words & _words(fact.content)), None):
        return fact.message_id
    return source.id if len(part.said) == 1 else None


def _words(text: str) -> frozenset[int]:
    vector = bm25.query(text)
    return frozenset(vector.indices) if vector is not None else frozenset()
