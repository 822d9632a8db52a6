"""`hachi traces set`: turns under a name, to be replayed before a prompt, a tool or a model changes."""

from typing import TYPE_CHECKING, Annotated

import typer

from agent.surfaces.cli.options import Limit, non_empty
from agent.surfaces.cli.output import Output, table_of
from agent.surfaces.cli.session import require, with_companion, with_traces
from agent.surfaces.cli.traces.options import Full, JUnit, MemoryOf, ModelOf, filtered
from agent.tracing.store.filters import TraceFilter

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.tracing.store.traces import Traces

Name = Annotated[str, typer.Argument(parser=non_empty, metavar="NAME", help="The set's.")]

group = typer.Typer(help="Keep sets of turns, to replay each as one.", rich_markup_mode=None)


@group.command()
@with_traces
@filtered("all")
async def add(
    traces: "Traces",
    wanted: TraceFilter,
    name: Name,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Turns; without ids those that fit.")
    ] = None,
    holds: Annotated[
        list[str] | None,
        typer.Option(
            "--holds", metavar="TEXT", help="What each reply must hold. May be given several times."
        ),
    ] = None,
    limit: Limit = 20,
) -> Output:
    """Add turns to a set: those with these ids, else the newest that fit the filters."""
    from agent.tracing.render.text import count
    from agent.tracing.store.sets import add_to_set

    require(not ids or wanted == TraceFilter(), "name the turns by their ids or by filters")
    if ids:
        turns = [await traces.find(id) for id in ids]
    else:
        found = await traces.list(wanted, limit=limit)
        turns = [one for one in found if one.content == "kept" and one.status not in ("running", "killed")]
    number = await add_to_set(traces, name, turns, holds or ())
    data = {"name": name, "added": [one.id for one in turns], "turns": number}
    return Output(data, f"{name}: {count(number, 'turn')}")


@group.command("list")
@with_traces
async def list_sets(traces: "Traces") -> Output:
    """List the sets, with how many turns each has."""
    from agent.tracing.store.sets import sets

    found = [{"name": name, "turns": turns} for name, turns in (await sets(traces)).items()]
    return table_of(
        found,
        ("name", "turns"),
        lambda one: [str(one["name"]), str(one["turns"])],
        empty="there is no set yet",
        to_json=dict,
    )


@group.command()
@with_traces
async def delete(traces: "Traces", name: Name) -> Output:
    """Delete a set. Its traces stay."""
    from agent.tracing.store.sets import delete_set

    turns = await delete_set(traces, name)
    return Output({"name": name, "turns": turns}, f"deleted the set {name}; its traces stay")


@group.command()
@with_companion
async def run(
    pet: "Companion",
    name: Name,
    memory: MemoryOf = "recorded",
    model: ModelOf = "recorded",
    junit: JUnit = None,
    full: Full = False,
) -> Output:
    """Replay each turn of a set, and show what they have in common.

    Nothing is written. Exit 0 if nothing differs, 3 if something does.
    """
    from agent.replay.replay import ReplayOptions
    from agent.surfaces.cli.traces.replay import replay_all
    from agent.tracing.store.sets import turns_of_set

    turns = await turns_of_set(pet.traces, name)
    options = ReplayOptions(memory=memory, fork=1 if model == "live" else None)
    replays = await replay_all(pet, turns, options)
    return replays.output(full=full, junit=junit, name=name)
