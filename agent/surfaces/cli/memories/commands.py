"""`hachi memories`: what is remembered, for the person it belongs to."""

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from agent.surfaces.cli.options import (
    Content,
    Json,
    MemoryId,
    PlaceName,
    Subjects,
    Ttl,
    User,
    clean,
    fraction,
    moment,
    person,
)
from agent.surfaces.cli.output import (
    MEMORY_COLUMNS,
    decision_json,
    hit_json,
    memory_json,
    memory_row,
    plain,
    print_json,
    print_table,
    short,
    update_json,
    when,
)
from agent.surfaces.cli.session import Session, running, say
from memory.errors import NotFound
from memory.records import DEFAULT_IMPORTANCE, Decision, Hit, Memory, MemoryType, MemoryUpdate

if TYPE_CHECKING:
    from memory.erasure.receipt import Erased

group = typer.Typer(help="See, correct, export and take away what is remembered.", rich_markup_mode=None)


@group.command("list")
@running
async def list_memories(
    context: typer.Context,
    user: User,
    place: PlaceName = "dm",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the newest so many.")] = None,
    json: Json = False,
) -> None:
    """What is remembered, newest first."""
    session: Session = context.obj
    async with session.companion() as pet:
        found = await pet.memories(user=user, place=place, limit=limit)
    if json:
        print_json([memory_json(memory) for memory in found])
    elif found:
        print_table(MEMORY_COLUMNS, [memory_row(memory) for memory in found])
    else:
        say(f"nothing is remembered for {user!r} here")


@group.command()
@running
async def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(parser=clean, metavar="QUERY")],
    user: User,
    place: PlaceName = "dm",
    limit: Annotated[int, typer.Option(min=1)] = 10,
    subject: Subjects = None,
    json: Json = False,
) -> None:
    """Find facts and past messages, best first."""
    session: Session = context.obj
    async with session.companion() as pet:
        hits = await pet.search_memories(query, user=user, place=place, limit=limit, subjects=subject or [])
    if json:
        print_json([hit_json(hit) for hit in hits])
    elif hits:
        print_table(("score", *MEMORY_COLUMNS), [_hit_row(hit) for hit in hits])
    else:
        say("nothing was found")


def _hit_row(hit: Hit) -> list[str]:
    if hit.memory is not None:
        return [f"{hit.score:.2f}", *memory_row(hit.memory)]
    said = f"{hit.author}: {hit.content}" if hit.author else hit.content
    return [f"{hit.score:.2f}", short(hit.id), said, "", hit.kind, "", when(hit.created_at), ""]


@group.command()
@running
async def add(
    context: typer.Context,
    content: Content,
    user: User,
    place: PlaceName = "dm",
    subject: Subjects = None,
    ttl: Ttl = None,
    type: Annotated[MemoryType, typer.Option()] = "fact",
    importance: Annotated[float, typer.Option(parser=fraction, metavar="0..1")] = DEFAULT_IMPORTANCE,
    at: Annotated[
        datetime | None,
        typer.Option(parser=moment, metavar="TIME", help="When it was said, if not now: 2026-01-10T09:30."),
    ] = None,
    everybody: Annotated[bool, typer.Option("--everybody", help="For everybody to know.")] = False,
    json: Json = False,
) -> None:
    """Remember one fact; says what was decided."""
    session: Session = context.obj
    _check_ttl(ttl)
    async with session.companion() as pet:
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
    _tell(decision, json)


@group.command()
@running
async def update(
    context: typer.Context,
    id: MemoryId,
    content: Content,
    user: User,
    ttl: Ttl = None,
    json: Json = False,
) -> None:
    """Say it differently; what it said before stays in its history."""
    session: Session = context.obj
    _check_ttl(ttl)
    async with session.companion() as pet:
        changes = {} if ttl is None else {"ttl": ttl}
        decision = await pet.update_memory(id, content, user=user, **changes)
        await pet.services.maintenance.try_to_catch_up()
    _tell(decision, json)


@group.command()
@running
async def delete(
    context: typer.Context,
    id: MemoryId,
    user: User,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Take a memory away for good, with what it had replaced."""
    session: Session = context.obj
    async with session.companion() as pet:
        memory = await pet.memory(id, user=user)
        if not yes and sys.stdin is not None and sys.stdin.isatty():
            print(plain(memory.content))
            if not typer.confirm("Delete it for good?"):
                say("nothing was deleted")
                raise typer.Exit(1)
        await pet.delete_memory(memory.id, user=user)
    if json:
        print_json(memory_json(memory))
    else:
        print(f"deleted {short(memory.id)}: {plain(memory.content)}")


@group.command()
@running
async def erase(
    context: typer.Context,
    user: Annotated[
        str, typer.Option("--user", "-u", parser=person, metavar="NAME", help="Who is to be forgotten.")
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Forget a person: everything of theirs, everywhere, for good. Exit 1 where something is left."""
    session: Session = context.obj
    async with session.companion() as pet:
        if not yes and sys.stdin is not None and sys.stdin.isatty():
            found = await pet.preview_erase(user=user)
            print_table(("what", "how much"), [(kind, str(count)) for kind, count in found.items()])
            if not typer.confirm(f"Erase all of this of {plain(user)} for good?"):
                say("nothing was erased")
                raise typer.Exit(1)
        receipt = await pet.erase(user=user)
    if json:
        print_json(receipt.to_json())
    else:
        _show_receipt(receipt)
    if not receipt.verified:
        raise typer.Exit(1)


def _show_receipt(receipt: "Erased") -> None:
    print_table(("what", "removed"), [(kind, str(count)) for kind, count in receipt.removed.items()])
    for left in receipt.left:
        print(f"{'left' if left.expected else 'STILL THERE'}: {left.count} in {left.kind}: {left.why}")
    done = "verified: nothing of theirs is left" if receipt.verified else "not verified: see above"
    print(f"{plain(receipt.user)} was erased at {when(receipt.at)}; {done}")


@group.command()
@running
async def history(context: typer.Context, id: MemoryId, user: User, json: Json = False) -> None:
    """What replaced what, when and why; oldest first."""
    session: Session = context.obj
    memory: Memory | None = None
    async with session.companion() as pet:
        try:
            memory = await pet.memory(id, user=user)
        except NotFound:
            steps = await pet.history(id, user=user)  # perhaps one that was replaced, by its whole id
            if not steps:
                raise
        else:
            steps = await pet.history(memory.id, user=user)
    if json:
        print_json([update_json(step) for step in steps])
    elif not steps and memory:
        print(f"{plain(memory.content)}\nsaid on {when(memory.created_at)}, and never changed since")
    else:
        print_table(("when", "id", "was", "became", "why"), [_step_row(step) for step in steps])


@group.command()
@running
async def undo(context: typer.Context, id: MemoryId, user: User, json: Json = False) -> None:
    """Take back the last replacement this memory took part in: what was replaced holds again."""
    session: Session = context.obj
    async with session.companion() as pet:
        step = await pet.undo(id, user=user)
    if json:
        print_json(update_json(step))
    else:
        print(f"brought back {short(step.new_id or '')}: {plain(step.new_content or '')}")


def _step_row(step: MemoryUpdate) -> list[str]:
    became = step.new_content if step.new_content is not None else "(nothing)"
    return [when(step.created_at), short(step.old_id), step.old_content, became, step.reason]


def _check_ttl(ttl: str | None) -> None:
    from memory.facts.ttl import read_ttl

    if not read_ttl(ttl).understood:
        say(f"{ttl!r} is no length of time such as 1h, 7d or 2w; it is kept for good")


_DONE = {"add": "added", "merge": "already known, merged", "replace": "replaced", "ignore": "not stored"}


def _tell(decision: Decision, json: bool) -> None:
    if json:
        whole = decision_json(decision)
        print_json(whole | {"reason": decision.reason, "target_id": decision.target_id})
        return
    where = f" {short(decision.id)}" if decision.id else ""
    until = f", until {when(decision.expires_at)}" if decision.expires_at else ""
    print(f"{_DONE[decision.action]}{where}: {plain(decision.content)} ({decision.reason}{until})")
