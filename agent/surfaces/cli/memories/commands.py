"""`hachi memories`: what is remembered, for the person it belongs to."""

from typing import TYPE_CHECKING, Annotated

import typer

from agent.surfaces.cli.options import (
    Content,
    Importance,
    Json,
    Limit,
    PlaceName,
    Query,
    SaidAt,
    ShortId,
    Subjects,
    Ttl,
    User,
    Yes,
    person,
)
from agent.surfaces.cli.output import (
    MEMORY_COLUMNS,
    confirm,
    interactive,
    memory_row,
    plain,
    print_json,
    print_records,
    print_table,
    say,
    short,
    when,
)
from agent.surfaces.cli.session import require, with_companion
from agent.surfaces.records_json import decision_json, hit_json, update_json
from memory.errors import NotFound
from memory.records import DEFAULT_IMPORTANCE, Decision, Hit, Memory, MemoryType, MemoryUpdate, memory_json

if TYPE_CHECKING:
    from agent.companion import Companion
    from memory.erasure.receipt import Erased

group = typer.Typer(help="See, correct, export and take away what is remembered.", rich_markup_mode=None)


@group.command("list")
@with_companion
async def list_memories(
    pet: "Companion",
    user: User,
    place: PlaceName = "dm",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the newest so many.")] = None,
    json: Json = False,
) -> None:
    """What is remembered, newest first."""
    found = await pet.memories(user=user, place=place, limit=limit)
    empty = f"nothing is remembered for {user!r} here"
    print_records(found, json, MEMORY_COLUMNS, memory_row, empty=empty, to_json=memory_json)


@group.command()
@with_companion
async def search(
    pet: "Companion",
    query: Query,
    user: User,
    place: PlaceName = "dm",
    limit: Limit = 10,
    subject: Subjects = None,
    json: Json = False,
) -> None:
    """Find facts and past messages, best first."""
    hits = await pet.search_memories(query, user=user, place=place, limit=limit, subjects=subject or [])
    columns = ("score", *MEMORY_COLUMNS)
    print_records(hits, json, columns, _hit_row, empty="nothing was found", to_json=hit_json)


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
    importance: Importance = DEFAULT_IMPORTANCE,
    at: SaidAt = None,
    everybody: Annotated[bool, typer.Option("--everybody", help="For everybody to know.")] = False,
    json: Json = False,
) -> None:
    """Remember one fact; says what was decided."""
    _check_ttl(ttl)
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
    await pet.services.maintenance.try_to_catch_up()
    _print_decision(decision, json)


@group.command()
@with_companion
async def update(
    pet: "Companion", id: ShortId, content: Content, user: User, ttl: Ttl = None, json: Json = False
) -> None:
    """Say it differently; what it said before stays in its history."""
    _check_ttl(ttl)
    changes = {} if ttl is None else {"ttl": ttl}
    decision = await pet.update_memory(id, content, user=user, **changes)
    await pet.services.maintenance.try_to_catch_up()
    _print_decision(decision, json)


@group.command()
@with_companion
async def delete(pet: "Companion", id: ShortId, user: User, yes: Yes = False, json: Json = False) -> None:
    """Take a memory away for good, with what it had replaced."""
    memory = await pet.memory(id, user=user)
    if not yes and interactive():
        print(plain(memory.content))
        confirm("Delete it for good?", "deleted")
    await pet.delete_memory(memory.id, user=user)
    if json:
        print_json(memory_json(memory))
    else:
        print(f"deleted {short(memory.id)}: {plain(memory.content)}")


@group.command()
@with_companion
async def erase(
    pet: "Companion",
    user: Annotated[
        str, typer.Option("--user", "-u", parser=person, metavar="NAME", help="Who is to be forgotten.")
    ],
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Forget a person: everything of theirs, everywhere, for good. Exit 1 where something is left."""
    if not yes:
        require(interactive(), "without a terminal, erasing needs --yes; nothing was erased")
        found = await pet.preview_erase(user=user)
        print_table(("what", "how much"), [(kind, str(count)) for kind, count in found.items()])
        confirm(f"Erase all of this of {plain(user)} for good?", "erased")
    receipt = await pet.erase(user=user)
    if json:
        print_json(receipt.to_json())
    else:
        _print_receipt(receipt)
    if not receipt.verified:
        raise typer.Exit(1)


def _print_receipt(receipt: "Erased") -> None:
    print_table(("what", "removed"), [(kind, str(count)) for kind, count in receipt.removed.items()])
    for left in receipt.left:
        print(f"{'left' if left.expected else 'STILL THERE'}: {left.count} in {left.kind}: {left.why}")
    done = "verified: nothing of theirs is left" if receipt.verified else "not verified: see above"
    print(f"{plain(receipt.user)} was erased at {when(receipt.at)}; {done}")


@group.command()
@with_companion
async def history(pet: "Companion", id: ShortId, user: User, json: Json = False) -> None:
    """What replaced what, when and why; oldest first."""
    memory: Memory | None = None
    try:
        memory = await pet.memory(id, user=user)
    except NotFound:
        steps = await pet.history(id, user=user)  # it may be a replaced one, named by its whole id
        if not steps:
            raise
    else:
        steps = await pet.history(memory.id, user=user)
    if not steps and memory and not json:
        print(f"{plain(memory.content)}\nsaid on {when(memory.created_at)}, and never changed since")
        return
    columns = ("when", "id", "was", "became", "why")
    print_records(steps, json, columns, _step_row, empty="", to_json=update_json)


def _step_row(step: MemoryUpdate) -> list[str]:
    became = step.new_content if step.new_content is not None else "(nothing)"
    return [when(step.created_at), short(step.old_id), step.old_content, became, step.reason]


@group.command()
@with_companion
async def undo(pet: "Companion", id: ShortId, user: User, json: Json = False) -> None:
    """Take back the last replacement this memory took part in: what was replaced holds again."""
    step = await pet.undo(id, user=user)
    if json:
        print_json(update_json(step))
    else:
        print(f"brought back {short(step.new_id or '')}: {plain(step.new_content or '')}")


def _check_ttl(ttl: str | None) -> None:
    from memory.facts.ttl import read_ttl

    if not read_ttl(ttl).understood:
        say(f"{ttl!r} is no length of time such as 1h, 7d or 2w; it is kept for good")


_DONE = {"add": "added", "merge": "already known, merged", "replace": "replaced", "ignore": "not stored"}


def _print_decision(decision: Decision, json: bool) -> None:
    if json:
        details = {"reason": decision.reason, "target_id": decision.target_id}
        print_json(decision_json(decision) | details)
        return
    id = f" {short(decision.id)}" if decision.id else ""
    until = f", until {when(decision.expires_at)}" if decision.expires_at else ""
    print(f"{_DONE[decision.action]}{id}: {plain(decision.content)} ({decision.reason}{until})")
