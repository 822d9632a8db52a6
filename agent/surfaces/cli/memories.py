"""`hachi memories`: read, add, correct and forget memories."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from agent.surfaces.cli.operate.transfer import erase, export_memories, import_memories
from agent.surfaces.cli.options import Most, PlaceName, Query, ShortId, User, Yes, moment, number, user_option
from agent.surfaces.cli.output import (
    Columns,
    Output,
    cell,
    confirm,
    forgotten_text,
    memory_columns,
    short,
    table_of,
    what_goes,
    when,
)
from agent.surfaces.cli.session import Companion, ListService, with_companion, with_lists
from agent.surfaces.cli.traces.lines import print_lines
from agent.tracing.render.text import one_line
from agent.tracing.render.text import when as to_the_second
from agent.tracing.render.tree import Line, Tone
from agent.tracing.trace import Summary
from agent.types.records_json import decision_json, describe_forgotten, forgotten_json, hit_json, memory_json
from memory.errors import NotFound
from memory.records import DEFAULT_IMPORTANCE, Decision, ForgetKind, Hit, MemoryType

if TYPE_CHECKING:
    from agent.tracing.why.gates import Why
    from agent.types.meanings import MemoryChanges

group = typer.Typer(help="See, correct, export and delete what is remembered.", rich_markup_mode=None)


OF_A_MESSAGE: Columns = {
    **dict.fromkeys(("subjects", "importance", "place", "expires"), lambda _: ""),
    "id": "id",
    "content": lambda hit: f"{hit.author}: {hit.content}" if hit.author else hit.content,
    "type": "kind",
    "told by": "author",
    "created": "created_at",
}
"""Columns of a hit that is a message or a summary, under the headings of memories."""
HISTORY: Columns = {
    "when": "created_at",
    "id": lambda step: short(step.old_id),
    "was": "old_content",
    "became": lambda step: "(nothing)" if step.new_content is None else step.new_content,
    "why": "reason",
}

Content = Annotated[str, typer.Argument(metavar="CONTENT", help="The fact, as a sentence.")]
Subjects = Annotated[
    list[str] | None, typer.Option("--subject", metavar="TAG", help="May be given several times.")
]


Ttl = Annotated[
    str | None,
    typer.Option("--ttl", metavar="TIME", help="When it expires: after 1h, 7d, 2w … Default: never."),
]


@group.command("list")
@with_lists
async def list_memories(
    lists: ListService,
    user: User,
    place: PlaceName = "dm",
    limit: Annotated[int, typer.Option(help="How many to show at most.")] = 10_000,
) -> Output:
    """List what is remembered, newest first."""
    memories = await lists.list(user=user, place=place, limit=limit)
    names = await lists.parts.transcript.speakers.names({user, *(memory.user_id for memory in memories)})
    name = names.get(user, user)
    title = "" if name == user else f"{name} ({user})"
    empty = f"nothing is remembered for {title or repr(user)} here"
    return table_of(memories, memory_columns(names), empty=empty, title=title, to_json=memory_json)


@group.command()
@with_companion
async def search(
    pet: Companion,
    query: Query,
    user: User,
    place: PlaceName = "dm",
    limit: Most = 10,
    subject: Subjects = None,
) -> Output:
    """Find facts and past messages, best first."""
    hits = await pet.search_memories(query, user=user, place=place, limit=limit, subjects=subject or [])
    tellers = {hit.memory.user_id for hit in hits if hit.memory}
    names = await pet.components.transcript.speakers.names(tellers)
    return table_of(hits, _hit_columns(names), empty="nothing was found", to_json=hit_json)


def _hit_columns(names: Mapping[str, str]) -> Columns:
    """Return the columns of memories; each also shows the matching field of a message or a summary."""
    columns = memory_columns(names)

    def column(name: str) -> Callable[[Hit], str]:
        return lambda hit: cell(hit.memory, columns[name]) if hit.memory else cell(hit, OF_A_MESSAGE[name])

    return {"score": lambda hit: f"{hit.score:.2f}"} | {name: column(name) for name in columns}


@group.command()
@with_companion
async def add(
    pet: Companion,
    content: Content,
    user: User,
    place: PlaceName = "dm",
    subject: Subjects = None,
    ttl: Ttl = None,
    type: Annotated[Any, typer.Option(parser=str, metavar="|".join(get_args(MemoryType)))] = "fact",
    importance: Annotated[float, typer.Option(parser=number, metavar="0..1")] = DEFAULT_IMPORTANCE,
    at: Annotated[
        datetime | None,
        typer.Option(parser=moment, metavar="TIME", help="When it was said, if not now: 2026-01-10T09:30."),
    ] = None,
    everybody: Annotated[bool, typer.Option("--everybody", help="Everybody may know it.")] = False,
) -> Output:
    """Remember one fact, and show the decision."""
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
    return _decided(decision)


@group.command()
@with_companion
async def update(pet: Companion, id: ShortId, content: Content, user: User, ttl: Ttl = None) -> Output:
    """Correct a memory. The old wording stays in its history."""
    changes: MemoryChanges = {} if ttl is None else {"ttl": ttl}
    return _decided(await pet.memories.update(id, content, user=user, **changes))


_DONE = {"add": "added", "merge": "already known, merged", "replace": "replaced", "ignore": "not stored"}


def _decided(decision: Decision) -> Output:
    """Return the decision for printing."""
    id = f" {short(decision.id)}" if decision.id else ""
    until = f", until {when(decision.expires_at)}" if decision.expires_at else ""
    text = f"{_DONE[decision.action]}{id}: {decision.content} ({decision.reason}{until})"
    return Output(decision_json(decision), text)


@group.command()
@with_companion
async def delete(
    pet: Companion,
    id: ShortId,
    user: User,
    kind: Annotated[ForgetKind, typer.Option(help="What the id is of.")] = "memory",
    yes: Yes = False,
) -> Output:
    """Forget a memory, or what a receipt offers besides it.

    Also forgets what it had replaced, the messages that state it and the replies that repeat it.
    """
    at: dict[str, Any] = {"user": user, "kind": kind}
    named = await pet.memories.preview_forget(id, **at)
    await confirm(yes, "forgotten", "Forget it, with what was said of it?", what_goes(named))
    receipt = await pet.memories.forget(named.id, **at)
    whole: dict[str, Any] = {**memory_json(receipt.memory)} if receipt.memory else {}
    text = forgotten_text(receipt, f"{short(id)}: {receipt.content}")
    return Output({**whole, "forgotten": forgotten_json(receipt)}, text)


@group.command()
@with_companion
async def restore(
    pet: Companion,
    id: Annotated[
        str, typer.Argument(metavar="ID", help="What `delete` printed, or its first 8 characters.")
    ],
    user: User,
) -> Output:
    """Undo a forgetting, within the time that `delete` printed."""
    back = await pet.memories.undo_forget(id, user=user)
    return Output(forgotten_json(back), f"brought back: {describe_forgotten(back)}")


@group.command()
@with_companion
async def history(pet: Companion, id: ShortId, user: User) -> Output:
    """Show what replaced what, when and why, oldest first."""
    try:
        memory = await pet.memories.get(id, user=user)
    except NotFound:
        steps = await pet.memories.history(id, user=user)  # a replaced memory is found only by its whole id
        if not steps:
            raise
    else:
        steps = await pet.memories.history(memory.id, user=user)
        if not steps:
            return Output([], f"{memory.content}\nsaid on {when(memory.created_at)}, and never changed since")
    return table_of(steps, HISTORY, empty="")


@group.command()
@with_companion
async def undo(pet: Companion, id: ShortId, user: User) -> Output:
    """Undo the last replacement of this memory. The replaced one is active again."""
    step = await pet.memories.undo(id, user=user)
    return Output(asdict(step), f"brought back {short(step.new_id or '')}: {step.new_content or ''}")


@group.command()
@with_companion
async def why(
    pet: Companion,
    wanted: Annotated[str, typer.Argument(metavar="TEXT|ID", help="Words of a memory, or its id.")],
    within: Annotated[
        str | None, typer.Option("--in", metavar="TRACE", help="A turn: its trace's id, or `last`.")
    ] = None,
    user: Annotated[str | None, user_option(help="Only what this person may list.")] = None,
) -> Output:
    """Show every gate that a memory met, with its value: why it was in the prompt of a turn, or was not.

    Without --in: who may read it now, and the turns that stored, found or used it.
    """
    from agent.tracing.why.explain import explain, traces_of
    from agent.tracing.why.gates import Question

    trace = await pet.traces.get(within, pet.clock()) if within else None
    linked = await pet.people.accounts(user=user) if user else []
    asked = Question(pet.clock(), user, trace, linked)
    found = await explain(pet.traces, asked, wanted)
    seen = [[] if trace else await traces_of(pet.traces, one.id, pet.clock()) for one in found]
    pairs = list(zip(found, seen, strict=True))
    told = (line for pair in pairs for line in _why_lines(*pair))
    return Output([_why_json(*pair) for pair in pairs], lambda: print_lines(told, whole=True))


def _why_json(one: "Why", traces: Sequence[tuple[Summary, str]]) -> dict[str, Any]:
    told = asdict(one) | {"given": one.received, "stopped_at": one.stopped_at and one.stopped_at.name}
    del told["in_turn"]
    return told | {"traces": [{"id": summary.id, "part": part} for summary, part in traces]}


def _why_lines(one: "Why", traces: Sequence[tuple[Summary, str]]) -> Iterator[Line]:
    end = {None: "", True: "  given to the model", False: "  not given to the model"}[one.received]
    end += f": {one.stopped_at.name}" if one.stopped_at else ""
    yield Line("", f"{one.id[:8]}  {one_line(one.content or '(forgotten)')}{end}", "strong")
    for gate in one.gates:
        tone: Tone = "good" if gate.passed else "bad" if gate == one.stopped_at else "faint"
        text = f"{'✓' if gate.passed else '✗'} {gate.name}: {gate.value}".removesuffix(": ")
        yield Line("  ", one_line(text), tone)
    for summary, part in traces:
        yield Line("  ", f"{summary.short}  {to_the_second(summary.started_at)}  {one_line(part)}", "faint")


group.command("export")(export_memories)
group.command("import")(import_memories)
group.command()(erase)
