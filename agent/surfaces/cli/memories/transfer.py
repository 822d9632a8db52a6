"""`hachi memories export` and `import`."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.errors import BadInput
from agent.surfaces.cli.options import PlaceName, User, clean
from agent.surfaces.cli.output import json_line, progress_bar, say, write_private_file
from agent.surfaces.cli.session import with_companion
from memory.audience import Place

if TYPE_CHECKING:
    from agent.companion import Companion

File = Annotated[Path | None, typer.Argument(metavar="FILE", help="Unset or - is stdin or stdout.")]


@with_companion
async def export_memories(pet: "Companion", user: User, file: File = None, place: PlaceName = "dm") -> None:
    """Write everything that is kept of a person as JSON; or the memories and messages of a place."""
    where = Place.parse(place)
    if where.private:
        whole = await pet.export(user=user)
    else:
        whole = await pet.services.exports.export_place(where, user=user)
    text = json_line(whole)
    if file is None or str(file) == "-":
        print(text)
    else:
        write_private_file(file, f"{text}\n")
        say(f"{len(whole['memories'])} memories and {len(whole['messages'])} messages are in {file}")


@with_companion
async def import_memories(pet: "Companion", user: User, file: File = None, place: PlaceName = "dm") -> None:
    """Take over an export, or a transcript: a list of messages with author, text and sent_at."""
    from agent.services.imports import parse_import

    name, given = _read(file)
    try:
        parsed = parse_import(given, user=user)
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from error
    messages, memories = len(parsed.messages), len(parsed.memories)
    with progress_bar() as bar:
        task = bar.add_task("importing", total=messages + memories)
        new = await pet.services.imports.store(
            parsed, user=user, place=place, progress=lambda done: bar.advance(task, done)
        )
    ignored = ", ".join(f"{kind} ({count})" for kind, count in (parsed.ignored or {}).items())
    left = f"; not taken over: {ignored}" if ignored else ""
    say(f"{messages} messages and {memories} memories were read; {new} of these are new{left}")


def _read(file: Path | None) -> tuple[str, Any]:
    """The file's name and its JSON. Raises BadInput."""
    name = "stdin" if file is None or str(file) == "-" else str(file)
    data = file.read_bytes() if file is not None and name != "stdin" else sys.stdin.buffer.read()
    try:
        return name, _clean(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{name} is no JSON: {error}") from error


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return {clean(key): _clean(item) for key, item in value.items()} if isinstance(value, dict) else value
