"""`hachi memories`: what is remembered, for the person it belongs to."""

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.errors import BadInput
from agent.surfaces.cli.options import (
    Limit,
    PlaceName,
    Query,
    ShortId,
    User,
    Yes,
    fraction,
    moment,
    person,
    read_by,
)
from agent.surfaces.cli.output import (
    MEMORY_COLUMNS,
    Output,
    confirm,
    forgotten_text,
    interactive,
    memory_row,
    plain,
    print_table,
    progress_bar,
    say,
    say_without_index,
    short,
    table_of,
    when,
    write_output,
)
from agent.surfaces.cli.session import require, with_companion
from agent.surfaces.records_json import decision_json, forgotten_json, hit_json, taken_with, update_json
from agent.tracing.render.text import json_text
from memory.audience import Place
from memory.errors import NotFound
from memory.records import DEFAULT_IMPORTANCE, Decision, Hit, MemoryType, MemoryUpdate, memory_json
from memory.text import storable

if TYPE_CHECKING:
    from agent.companion import Companion
    from memory.erasure.person.receipt import Erased

group = typer.Typer(help="See, correct, export and delete what is remembered.", rich_markup_mode=None)

Content = Annotated[str, typer.Argument(metavar="CONTENT", help="The fact, as a sentence.")]
Subjects = Annotated[
    list[str] | None, typer.Option("--subject", metavar="TAG", help="May be given several times.")
]


def _ttl(text: str) -> str:
    from memory.facts.ttl import read_ttl

    if not read_ttl(text).understood:
        raise ValueError(f"{text!r} is no length of time such as 1h, 7d, 2w or never")
    return text


Ttl = Annotated[
    str | None,
    typer.Option(
        "--ttl",
        parser=read_by(_ttl),
        metavar="TIME",
        help="How long it holds: 1h, 7d, 2w … Default: for good.",
    ),
]
File = Annotated[Path | None, typer.Argument(metavar="FILE", help="Stdin or stdout by default, or for -.")]


@group.command("list")
@with_companion
async def list_memories(
    pet: "Companion",
    user: User,
    place: PlaceName = "dm",
    limit: Annotated[int | None, typer.Option(min=1, help="How many to show at most.")] = None,
) -> Output:
    """List what is remembered, newest first."""
    found = await pet.memories(user=user, place=place, limit=limit)
    empty = f"nothing is remembered for {user!r} here"
    return table_of(found, MEMORY_COLUMNS, memory_row, empty=empty, to_json=memory_json)


@group.command()
@with_companion
async def search(
    pet: "Companion",
    query: Query,
    user: User,
    place: PlaceName = "dm",
    limit: Limit = 10,
    subject: Subjects = None,
) -> Output:
    """Find facts and past messages, best first."""
    hits = await pet.search_memories(query, user=user, place=place, limit=limit, subjects=subject or [])
    say_without_index(pet.services.memories.recall.without_index)
    columns = ("score", *MEMORY_COLUMNS)
    return table_of(hits, columns, _hit_row, empty="nothing was found", to_json=hit_json)


def _hit_row(hit: Hit) -> list[str]:
    if hit.memory is not None:
        return [f"{hit.score:.2f}", *memory_row(hit.memory)]
    said = f"{hit.author}: {hit.content}" if hit.author else hit.content
    return [f"{hit.score:.2f}", short(hit.id), said, "", hit.kind, "", when(hit.created_at), ""]


@group.command()
@with_companion
async def add(
    pet: "Companion",
    content: Content,
    user: User,
    place: PlaceName = "dm",
    subject: Subjects = None,
    ttl: Ttl = None,
    type: Annotated[MemoryType, typer.Option()] = "fact",
    importance: Annotated[float, typer.Option(parser=read_by(fraction), metavar="0..1")] = DEFAULT_IMPORTANCE,
    at: Annotated[
        datetime | None,
        typer.Option(parser=moment, metavar="TIME", help="When it was said, if not now: 2026-01-10T09:30."),
    ] = None,
    everybody: Annotated[bool, typer.Option("--everybody", help="Everybody may know it.")] = False,
) -> Output:
    """Remember one fact, and say what was decided."""
    decision = await pet.remember(
        content,
        user=user,
        place=place,
        subjects=subject or [],
        ttl=ttl,
        type=type,
        importance=importance,
        said_at=at,
        everybody=everybody,
    )
    return await _indexed(pet, decision)


@group.command()
@with_companion
async def update(pet: "Companion", id: ShortId, content: Content, user: User, ttl: Ttl = None) -> Output:
    """Correct a memory. What it said before stays in its history."""
    changes = {} if ttl is None else {"ttl": ttl}
    return await _indexed(pet, await pet.update_memory(id, content, user=user, **changes))


_DONE = {"add": "added", "merge": "already known, merged", "replace": "replaced", "ignore": "not stored"}


async def _indexed(pet: "Companion", decision: Decision) -> Output:
    """Index what was decided, and return it for printing."""
    await pet.services.maintenance.try_to_catch_up()
    id = f" {short(decision.id)}" if decision.id else ""
    until = f", until {when(decision.expires_at)}" if decision.expires_at else ""
    text = f"{_DONE[decision.action]}{id}: {decision.content} ({decision.reason}{until})"
    why = {"reason": decision.reason, "target_id": decision.target_id}
    return Output(decision_json(decision) | why, text)


@group.command()
@with_companion
async def delete(pet: "Companion", id: ShortId, user: User, yes: Yes = False) -> Output:
    """Forget a memory.

    What it had replaced, the messages that state it and the replies that repeat it go too.
    """
    memory = await pet.memory(id, user=user)
    if not yes and interactive():
        print(plain(memory.content))
        confirm("Forget it, with what was said of it?", "forgotten")
    receipt = await pet.delete_memory(memory.id, user=user)
    told = {"forgotten": forgotten_json(receipt)}
    return Output(
        memory_json(memory) | told, forgotten_text(receipt, f"{short(memory.id)}: {memory.content}")
    )


@group.command()
@with_companion
async def restore(
    pet: "Companion",
    id: Annotated[
        str, typer.Argument(metavar="ID", help="What `delete` printed, or its first 8 characters.")
    ],
    user: User,
) -> Output:
    """Bring back what was forgotten, in the time that `delete` told."""
    back = await pet.undo_forget(id, user=user)
    return Output(forgotten_json(back), f"brought back: {taken_with(back)}")


@group.command()
@with_companion
async def erase(
    pet: "Companion",
    user: Annotated[str, typer.Option("--user", "-u", parser=person, metavar="NAME", help="Whom to erase.")],
    yes: Yes = False,
) -> Output:
    """Erase a person: all that is theirs, everywhere, for good. Exit 1 if something is left."""
    if not yes:
        require(interactive(), "without a terminal, erasing needs --yes; nothing was erased")
        found = await pet.preview_erase(user=user)
        print_table(("what", "how much"), [(kind, str(count)) for kind, count in found.items()])
        confirm(f"Erase all of this of {plain(user)} for good?", "erased")
    receipt = await pet.erase(user=user)
    return Output(receipt.to_json(), lambda: _print_receipt(receipt), code=0 if receipt.verified else 1)


def _print_receipt(receipt: "Erased") -> None:
    print_table(("what", "removed"), [(kind, str(count)) for kind, count in receipt.removed.items()])
    for left in receipt.left:
        print(f"{'left' if left.expected else 'STILL THERE'}: {left.count} in {left.kind}: {left.why}")
    for where in receipt.out_of_reach:
        print(f"not in reach: {where}")
    done = "verified: nothing of theirs is left" if receipt.verified else "not verified: see above"
    print(f"{plain(receipt.user)} was erased at {when(receipt.at)}; {done}")


@group.command()
@with_companion
async def history(pet: "Companion", id: ShortId, user: User) -> Output:
    """Show what replaced what, when and why, oldest first."""
    try:
        memory = await pet.memory(id, user=user)
    except NotFound:
        steps = await pet.history(id, user=user)  # it may be a replaced one, named by its whole id
        if not steps:
            raise
    else:
        steps = await pet.history(memory.id, user=user)
        if not steps:
            return Output([], f"{memory.content}\nsaid on {when(memory.created_at)}, and never changed since")
    columns = ("when", "id", "was", "became", "why")
    return table_of(steps, columns, _step_row, empty="", to_json=update_json)


def _step_row(step: MemoryUpdate) -> list[str]:
    became = step.new_content if step.new_content is not None else "(nothing)"
    return [when(step.created_at), short(step.old_id), step.old_content, became, step.reason]


@group.command()
@with_companion
async def undo(pet: "Companion", id: ShortId, user: User) -> Output:
    """Undo the last replacement of this memory. What was replaced holds again."""
    step = await pet.undo(id, user=user)
    return Output(update_json(step), f"brought back {short(step.new_id or '')}: {step.new_content or ''}")


@group.command("export")
@with_companion
async def export_memories(pet: "Companion", user: User, file: File = None, place: PlaceName = "dm") -> None:
    """Write all that is kept of a person or a place, as JSON."""
    where = Place.parse(place)
    if where.private:
        whole = await pet.export(user=user)
    else:
        whole = await pet.services.exports.export_place(where, user=user)
    counts = f"{len(whole['memories'])} memories and {len(whole['messages'])} messages"
    write_output(file, f"{json_text(whole)}\n", f"{counts} are")


@group.command("import")
@with_companion
async def import_memories(pet: "Companion", user: User, file: File = None, place: PlaceName = "dm") -> None:
    """Import an export, or a transcript.

    A transcript is a list of messages with author, text and sent_at, in a place also user. A place's export
    goes back to that place, and each message and memory to whose it was.
    """
    from agent.services.transfer.imports import parse_import

    name, data = _read(file)
    try:
        given = _storable(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{name} is no JSON: {error}") from error
    try:
        parsed = parse_import(given, user=user)
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from error
    messages, memories = len(parsed.messages), parsed.count
    with progress_bar() as bar:
        task = bar.add_task("importing", total=messages + memories)
        new = await pet.services.imports.store(
            parsed, user=user, place=place, progress=lambda done: bar.advance(task, done)
        )
    ignored = ", ".join(f"{kind} ({count})" for kind, count in (parsed.ignored or {}).items())
    left = f"; not imported: {ignored}" if ignored else ""
    say(f"{messages} messages and {memories} memories were read; {new} of these are new{left}")


def _read(file: Path | None) -> tuple[str, bytes]:
    if file is None or str(file) == "-":
        return "stdin", sys.stdin.buffer.read()
    return str(file), file.read_bytes()


def _storable(value: Any) -> Any:
    """JSON whose texts can be stored."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_storable(item) for item in value]
    return (
        {storable(key): _storable(item) for key, item in value.items()} if isinstance(value, dict) else value
    )
