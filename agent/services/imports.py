"""Imports a file that `export` wrote, or a transcript.

Everything is read and checked before the first row is written, so a bad file changes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent.errors import BadInput
from agent.services.export import FORMAT, VERSION
from agent.services.transcripts import TranscriptService
from memory.audience import Place
from memory.facts.candidate import Provenance
from memory.facts.decision_log import decision_run
from memory.facts.writer import FactWriter
from memory.index.sync import IndexSync, Progress
from memory.records import DEFAULT_IMPORTANCE, Draft

AT_ONCE = 10
"""Memories that a model, if one rules on facts, is asked about in one call."""
BATCH = 50
"""Memories stored before the index catches up: each new one is compared with all rows the index lacks."""


@dataclass(frozen=True, slots=True)
class ParsedImport:
    messages: list[Any]
    memories: Sequence[tuple[Draft, Provenance]] = ()
    ignored: Mapping[str, int] | None = None
    """Counts of the export's other entries by kind. They are not imported."""


@dataclass(frozen=True)
class ImportService:
    transcripts: TranscriptService
    writer: FactWriter
    sync: IndexSync

    async def store(
        self,
        parsed: ParsedImport,
        *,
        user: str,
        place: Place | str | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Store messages first, because memories name them as evidence. Calls `progress` for each row.
        Returns how many memories are new. Raises BadInput."""
        await self.transcripts.import_messages(parsed.messages, user=user, place=place, progress=progress)
        with decision_run():
            new = await self._store_memories(parsed.memories, progress)
        await self.sync.catch_up()
        return new

    async def _store_memories(
        self, memories: Sequence[tuple[Draft, Provenance]], progress: Progress | None
    ) -> int:
        new = 0
        for start in range(0, len(memories), AT_ONCE):
            decisions = await self.writer.remember_each(memories[start : start + AT_ONCE])
            new += sum(decision.action in ("add", "replace") for decision in decisions)
            if progress:
                progress(len(decisions))
            if (start + AT_ONCE) % BATCH == 0:
                await self.sync.try_to_catch_up()
        return new


def parse_import(given: Any, *, user: str) -> ParsedImport:
    """Parse an export, whose memories become this user's, or a list of messages. Raises BadInput."""
    if isinstance(given, list):
        return ParsedImport(_messages(given))
    if not isinstance(given, dict) or given.get("format") != FORMAT:
        raise BadInput("this is neither an export of hachi nor a list of messages")
    if given.get("version") != VERSION:
        raise BadInput(
            f"this was written by a newer hachi (version {given.get('version')!r}); upgrade this one"
        )
    memories, messages = (given.get(key, []) for key in ("memories", "messages"))
    if not (isinstance(memories, list) and isinstance(messages, list)):
        raise BadInput("memories and messages must be lists")
    read = []
    for number, entry in enumerate(memories, start=1):
        try:
            read.append(_memory(entry, user))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            what = f"has no {error.args[0]!r}" if isinstance(error, KeyError) else f"cannot be read: {error}"
            raise BadInput(f"memory {number} {what}; nothing was imported") from error
    imported = ("memories", "messages")
    lists = {key: len(value) for key, value in given.items() if isinstance(value, list) and value}
    ignored = {key: count for key, count in lists.items() if key not in imported}
    return ParsedImport(_messages(messages), read, ignored)


def _messages(entries: list[Any]) -> list[Any]:
    """Check the shape of the entries only; `import_messages` checks the values."""
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            raise BadInput(
                f"message {number} is no object with author, text and sent_at; nothing was imported"
            )
    return entries


def _memory(entry: Any, user: str) -> tuple[Draft, Provenance]:
    created_at = _time(entry["created_at"])
    expires_at = _time(entry["expires_at"]) if entry.get("expires_at") else None
    content, subjects = entry["content"], entry.get("subjects", [])
    if not isinstance(content, str) or not all(isinstance(subject, str) for subject in subjects):
        raise TypeError("content must be text and subjects a list of texts")
    draft = Draft(
        content=content,
        subjects=tuple(subjects),
        # In a form that `memory.facts.ttl` reads back to the microsecond.
        ttl=f"PT{(expires_at - created_at).total_seconds():.6f}S" if expires_at else None,
        type=_one_of(entry.get("type", "fact"), ("fact", "preference", "insight")),
        importance=_importance(entry.get("importance", DEFAULT_IMPORTANCE)),
    )
    origin = Provenance(
        user=user,
        said_at=created_at,
        place=Place.parse(entry.get("place")),
        source=_one_of(entry.get("source", "note"), ("conversation", "chat", "note")),
        message_id=entry.get("message_id"),
    )
    return draft, origin


def _time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} needs a time zone, such as 2026-01-10T09:30:00+00:00")
    return moment


def _one_of(value: Any, allowed: Sequence[str]) -> Any:
    if value not in allowed:
        raise ValueError(f"{value!r} is none of {', '.join(allowed)}")
    return value


def _importance(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"importance {value!r} is no number from 0 to 1")
    return float(value)
