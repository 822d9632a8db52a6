"""`hachi traces replay` and `hachi traces to-test`: replay turns, and turn them into tests."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from agent.errors import BadInput
from agent.surfaces.cli.output import Output, progress_bar, say
from agent.surfaces.cli.session import Companion, require, with_companion
from agent.surfaces.cli.traces.lines import TraceId, changed_lines, difference_lines, print_lines
from agent.tracing.render.export import read_export
from agent.tracing.render.text import count, one_line
from agent.tracing.render.trace import heading, trace_lines
from agent.tracing.render.tree import Line
from agent.tracing.store.filters import TraceFilter
from agent.tracing.trace import TraceWithJobs, span_json

if TYPE_CHECKING:
    from agent.replay.replay import ReplayFailure, ReplayResult
    from agent.tracing.trace import TraceWithJobs

CHANGED = 3
"""The exit code if a turn differs. 1 is an error, 2 a mistyped command."""


@with_companion
async def replay(
    pet: Companion,
    turns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID|FILE]...", help="Ids, their first characters, `last`, or exported files."
        ),
    ] = None,
    newest: Annotated[
        int | None, typer.Option("--newest", min=1, metavar="N", help="The newest N turns instead.")
    ] = None,
    memory: Annotated[
        Literal["recorded", "today"],
        typer.Option("--memory", help="The recorded results of tools, or new ones from today's memory."),
    ] = "recorded",
    model: Annotated[
        Literal["recorded", "live"],
        typer.Option("--model", help="The recorded outputs, or also those of the configured model."),
    ] = "recorded",
    from_call: Annotated[
        int | None,
        typer.Option("--from", min=1, metavar="N", help="Use the live model from call N on; 1 by default."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Show every difference, with whole texts.")] = False,
) -> Output:
    """Replay turns from their traces with today's prompts, settings and code.

    Nothing is written. Shows the first difference; with a live model, both turns. Exit 3 if something differs
    and the model was not live, else 0.
    """
    require(bool(turns) != bool(newest), "name the turns by their ids or files, or --newest N")
    require(model == "live" or from_call is None, "--from N needs --model live")
    from agent.replay.replay import ReplayOptions, ReplayResult, replay_each

    options = ReplayOptions(memory=memory, fork=(from_call or 1) if model == "live" else None)
    chosen = await _turns(pet, turns or [], newest)
    with progress_bar() as bar:
        track = bar.track(chosen, total=len(chosen), description="replaying")
        found = [one async for one in replay_each(pet, track, options)]
    if len(found) == len(turns or ()) == 1 and not isinstance(found[0], ReplayResult):
        raise BadInput(found[0].why)
    changed = any(isinstance(one, ReplayResult) and not (one.same or one.live) for one in found)
    data = [_as_json(one) for one in found]
    return Output(data, lambda: _print(found, full=full), CHANGED if changed else 0)


async def _turns(pet: Companion, named: Sequence[str], newest: int | None) -> list[str | TraceWithJobs]:
    """Return the turns with these ids or in these files, or the ids of the newest finished turns."""
    if newest is not None:
        listed = await pet.traces.list(TraceFilter(), pet.clock(), newest)
        return [one.id for one in listed if one.status not in ("running", "killed")]
    found = list[Any]()
    for name in named:
        found += _in_file(Path(name)) or [(await pet.traces.find(name, pet.clock())).id]
    return found


def _in_file(file: Path) -> list[TraceWithJobs]:
    """Return the traces in an exported file; none if there is no such file."""

    try:
        return read_export(file.read_text(encoding="utf-8")) if file.is_file() else []
    except ValueError as error:
        raise BadInput(f"{file} cannot be replayed: {error}") from error


def _as_json(one: "ReplayResult | ReplayFailure") -> dict[str, Any]:
    from agent.replay.replay import ReplayFailure

    if isinstance(one, ReplayFailure):
        return {"id": one.id, "not_replayed": one.why}
    before, after = (
        {"usage": asdict(summary.usage), "took": summary.took, "cost": summary.cost}
        for summary in (one.before.trace.summary, one.after.summary)
    )
    told = {name: getattr(one, name) for name in ("same", "behaves_otherwise")}
    told |= {"memory": one.options.memory, "forked_at": one.options.fork, "before": before, "after": after}
    told |= {"differences": [asdict(difference) for difference in one.differences]}
    return {"id": one.before.trace.id, **told, "root": span_json(one.after.root)}


def _print(found: "Sequence[ReplayResult | ReplayFailure]", *, full: bool) -> None:
    """Print a short report of each turn, then what all of them share."""
    from agent.replay.replay import ReplayResult, causes

    print_lines((line for one in found for line in _lines(one, full)), whole=full)
    done = [one for one in found if isinstance(one, ReplayResult)]
    if len(found) < 2 or any(one.live for one in done):
        return
    same, skipped = sum(one.same for one in done), len(found) - len(done)
    more = f", {skipped} not replayed" if skipped else ""
    print(f"{len(done)} replayed: {same} same, {len(done) - same} changed{more}")
    for what, turns, otherwise in causes(done):
        print(f"{count(turns, 'turn')}: {one_line(what)}; {otherwise or 'none'} went otherwise")


def _lines(one: "ReplayResult | ReplayFailure", full: bool) -> Iterator[Line]:
    from agent.replay.replay import ReplayFailure

    if isinstance(one, ReplayFailure):
        yield Line("", f"not replayed: {one_line(one.why)}", "faint")
        return
    before, after = one.before.trace, one.after
    if one.live:
        yield Line("", "recorded:", "strong")
        yield from trace_lines(before, full=full)
        yield Line("", f"from call {one.options.fork} on with the model of today:", "strong")
        yield from trace_lines(after, full=full)
        return
    if one.same:
        yield Line("", f"same     {heading(before.summary)}", "good")
        return
    first, *others = one.differences
    yield Line("", f"CHANGED  {heading(before.summary)}", "bad")
    yield Line("", one_line(f"first difference: {first.where} {first.what}"), "strong")
    if full:
        yield from list(difference_lines(before.summary, after.summary, one.differences, whole=True))[3:]
        return
    yield from changed_lines(first, whole=False)
    if others:
        told = f"… and {len(others)} more that may follow from it; --full shows them"
        yield Line("", told, "faint")


@with_companion
async def to_test(
    pet: Companion,
    id: TraceId = "last",
    into: Annotated[
        Path | None,
        typer.Option(
            "--into", metavar="FOLDER", help="Default: the folder `tests` if it exists, else this folder."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files.")] = False,
) -> None:
    """Write a turn as a pytest file with a fixture. The test fails if the turn differs from the recording."""
    from agent.replay.testing import make_test, take_again

    files = await make_test(await pet.traces.get_with_jobs(id, pet.clock()))
    for path in (paths := _write(files, into, force=force)):
        print(path)
    turn = await asyncio.to_thread(take_again, next(path for path in paths if path.suffix == ".json"))
    for first in turn.differences[:1]:
        say(f"it fails until the turn goes as recorded: {first.where} {first.what}")
    say("it holds what was said and remembered; look through the fixture before you share it")
    say("run it with pytest, which does not come with Hachi: pip install pytest")


def _write(files: Mapping[str, str], into: Path | None, *, force: bool) -> list[Path]:
    """Write the files, and return their paths. Raises BadInput if a file exists, unless `force` is set."""
    folder = into or (Path("tests") if Path("tests").is_dir() else Path())
    folder.mkdir(parents=True, exist_ok=True)
    existing = [name for name in files if (folder / name).exists()]
    if existing and not force:
        raise BadInput(f"{', '.join(existing)} is in {folder} already; --force writes over it")
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in files]
