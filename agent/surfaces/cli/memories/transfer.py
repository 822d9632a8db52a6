"""`hachi memories export` and `import`: memories as a file, and conversations that were held elsewhere."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.errors import BadInput
from agent.surfaces.cli.options import PlaceName, User, clean
from agent.surfaces.cli.output import json_line, memory_json, progress_bar
from agent.surfaces.cli.session import Session, running, say
from memory.audience import GLOBAL, Audience, Place
from memory.records import Draft, Message

if TYPE_CHECKING:
    from agent.companion import Companion
    from memory.facts.candidate import Provenance

STEP = 50
"""Memories taken over before the index is caught up: a new one is compared with all that the index lacks."""

File = Annotated[Path | None, typer.Argument(metavar="FILE", help="Unset or - is stdin or stdout.")]


def add_to(group: typer.Typer) -> None:
    group.command("export")(export_memories)
    group.command("import")(import_file)


@running
async def export_memories(
    context: typer.Context, user: User, file: File = None, place: PlaceName = "dm"
) -> None:
    """Write everything that is kept of a person as JSON; or the memories and messages of a place."""
    session: Session = context.obj
    where = Place.parse(place)
    async with session.companion() as pet:
        whole = await pet.export(user=user) if where.private else await _of_place(pet, user, where)
    text = json_line(whole)
    if file is None or str(file) == "-":
        print(text)
    else:
        _write(file, text)
        say(f"{len(whole['memories'])} memories and {len(whole['messages'])} messages are in {file}")


async def _of_place(pet: "Companion", user: str, place: Place) -> dict[str, Any]:
    """What everybody there may read."""
    from agent.services.export import FORMAT, VERSION

    audience = Audience.of(user, place)
    own = audience.keys - {GLOBAL}
    found = [m for m in await pet.memories(user=user, place=place) if own & m.owners]
    found.sort(key=lambda memory: (memory.created_at, memory.id))
    messages = await pet.components.transcript.last(
        place.key, audience, await pet.components.transcript.count(audience)
    )
    return {
        "format": FORMAT,
        "version": VERSION,
        "exported_at": datetime.now(UTC),
        "user": user,
        "place": str(place),
        "memories": [memory_json(memory) for memory in found],
        "messages": [_message_json(message) for message in messages],
    }


def _message_json(message: Message) -> dict[str, Any]:
    return {key: value for key, value in asdict(message).items() if key != "conversation_id"}


def _write(path: Path, text: str) -> None:
    """All of it or nothing, and for the owner's eyes alone."""
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
            out.write(text + "\n")
        half.replace(path)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error


@running
async def import_file(context: typer.Context, user: User, file: File = None, place: PlaceName = "dm") -> None:
    """Take over an export, or a transcript: a list of messages with author, text and sent_at."""
    session: Session = context.obj
    name, given = _read(file)
    if isinstance(given, list):
        memories: list[tuple[Draft, Provenance]] = []
        messages, left = given, ""
    else:
        memories, messages = _export(name, given, user)
        left = _left(given)
    _check_messages(name, messages)
    async with session.companion() as pet:
        # The messages first: with them the evidence that memories point to.
        count = await pet.import_messages(messages, user=user, place=place)
        kept = await _remember(pet, memories)
        with progress_bar() as bar:
            task = bar.add_task("indexing", total=count + len(memories))
            await pet.catch_up(lambda done: bar.advance(task, done))
    say(f"{count} messages and {len(memories)} memories were read; {kept} of these are new{left}")


def _left(given: dict[str, Any]) -> str:
    """What else there is in an export, such as "; not taken over: context (2), tasks (1)"."""
    kinds = {key: len(value) for key, value in given.items() if isinstance(value, list) and value}
    left = [f"{key} ({count})" for key, count in kinds.items() if key not in ("memories", "messages")]
    return f"; not taken over: {', '.join(left)}" if left else ""


async def _remember(pet: "Companion", memories: "Sequence[tuple[Draft, Provenance]]") -> int:
    kept = 0
    with progress_bar() as bar:
        for number, (draft, origin) in enumerate(bar.track(memories, description="remembering"), start=1):
            [decision] = await pet.components.writer.remember([draft], origin)
            kept += decision.action in ("add", "replace")
            if number % STEP == 0:
                await pet.services.maintenance.try_to_catch_up()
    return kept


def _read(file: Path | None) -> tuple[str, Any]:
    """The file's name and what is in it. Raises BadInput."""
    name = "stdin" if file is None or str(file) == "-" else str(file)
    data = sys.stdin.buffer.read() if file is None or name == "stdin" else file.read_bytes()
    try:
        return name, _cleaned(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{name} is no JSON: {error}") from error


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {key: _cleaned(item) for key, item in value.items()}
    return value


def _export(name: str, given: Any, user: str) -> "tuple[list[tuple[Draft, Provenance]], list[Any]]":
    from agent.services.export import FORMAT, VERSION

    if not isinstance(given, dict) or given.get("format") != FORMAT:
        raise BadInput(f"{name} is neither an export of hachi nor a list of messages")
    if given.get("version") != VERSION:
        raise BadInput(
            f"{name} was written by a newer hachi (version {given.get('version')!r}); upgrade this one"
        )
    lists = [given.get(key, []) for key in ("memories", "messages")]
    if not all(isinstance(entries, list) for entries in lists):
        raise BadInput(f"{name}: memories and messages must be lists")
    memories, messages = lists
    read = []
    for number, entry in enumerate(memories, start=1):
        try:
            read.append(_memory(entry, user))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            what = f"has no {error.args[0]!r}" if isinstance(error, KeyError) else f"cannot be read: {error}"
            raise BadInput(f"{name}: memory {number} {what}; nothing was imported") from error
    return read, messages


def _memory(entry: Any, user: str) -> "tuple[Draft, Provenance]":
    from memory.facts.candidate import Provenance

    created_at = _time(entry["created_at"])
    expires_at = _time(entry["expires_at"]) if entry.get("expires_at") else None
    if not isinstance(entry["content"], str) or not all(
        isinstance(s, str) for s in entry.get("subjects", [])
    ):
        raise TypeError("content must be text and subjects a list of texts")
    draft = Draft(
        content=entry["content"],
        subjects=tuple(entry.get("subjects", [])),
        # Written so that `memory.facts.ttl` reads it back to the microsecond.
        ttl=f"PT{(expires_at - created_at).total_seconds():.6f}S" if expires_at else None,
        type=_one_of(entry.get("type", "fact"), ("fact", "preference", "insight")),
        importance=_importance(entry.get("importance", 0.5)),
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


def _one_of(value: Any, known: Sequence[str]) -> Any:
    if value not in known:
        raise ValueError(f"{value!r} is none of {', '.join(known)}")
    return value


def _importance(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"importance {value!r} is no number from 0 to 1")
    return float(value)


def _check_messages(name: str, messages: list[Any]) -> None:
    """Shape alone; what they hold is for `import_messages` to check, before it writes the first."""
    for number, entry in enumerate(messages, start=1):
        if not isinstance(entry, dict):
            raise BadInput(
                f"{name}: message {number} is no object with author, text and sent_at; nothing was imported"
            )
