"""`hachi traces replay` and `hachi traces to-test`: replay turns, and make tests of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.errors import BadInput
from agent.surfaces.cli.output import Output, progress_bar, say
from agent.surfaces.cli.session import require, with_companion
from agent.surfaces.cli.traces.options import Full, JUnit, MemoryOf, ModelOf, TraceId
from agent.tracing.store.filters import TraceFilter

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.replay.replay import ReplayOptions
    from agent.surfaces.cli.traces.replayed import Replays


@with_companion
async def replay(
    pet: "Companion",
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Ids, their first characters, or `last`.")
    ] = None,
    newest: Annotated[
        int | None, typer.Option("--newest", min=1, metavar="N", help="The newest N turns instead.")
    ] = None,
    memory: MemoryOf = "recorded",
    model: ModelOf = "recorded",
    from_call: Annotated[
        int | None,
        typer.Option("--from", min=1, metavar="N", help="Ask a live model from call N on, 1 by default."),
    ] = None,
    junit: JUnit = None,
    full: Full = False,
) -> Output:
    """Replay turns from their traces with today's prompts, settings and code.

    Nothing is written. Shows the first difference. Exit 0 if nothing differs, 3 if something does.
    """
    require(bool(ids) != bool(newest), "name the turns by their ids, or --newest N")
    require(model == "live" or from_call is None, "--from N needs --model live")
    from agent.replay.replay import ReplayOptions, replay
    from agent.surfaces.cli.traces.replayed import Replays

    options = ReplayOptions(memory=memory, fork=(from_call or 1) if model == "live" else None)
    if ids and len(ids) == 1:  # what cannot be replayed is an error
        replays = Replays([await replay(pet, await pet.traces.get_with_jobs(ids[0], pet.clock()), options)])
    else:
        replays = await replay_all(pet, dict.fromkeys(await _turns(pet, ids or [], newest), ()), options)
    return replays.output(full=full, junit=junit)


async def replay_all(
    pet: "Companion", turns: Mapping[str, Sequence[str]], options: "ReplayOptions"
) -> "Replays":
    """Replay these turns one after the other, with a bar on a terminal."""
    from agent.replay.replay import replay_each
    from agent.surfaces.cli.traces.replayed import Replays

    with progress_bar() as bar:
        track = bar.track(turns.items(), total=len(turns), description="replaying")
        return Replays([one async for one in replay_each(pet, track, options)])


@with_companion
async def to_test(
    pet: "Companion",
    id: TraceId = "last",
    into: Annotated[
        Path | None,
        typer.Option("--into", metavar="FOLDER", help="`tests` by default if it is here, otherwise here."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files.")] = False,
) -> None:
    """Make a pytest file of a turn, and its fixture. It passes now, and fails if the turn goes otherwise."""
    from agent.replay.pytest_file import make_test

    files = await make_test(await pet.traces.get(id, pet.clock()))
    for path in _write(files, into, force=force):
        print(path)
    say("it holds what was said and remembered; look through the fixture before you share it")
    say("run it with pytest, which does not come with Hachi: pip install pytest")


def _write(files: Mapping[str, str], into: Path | None, *, force: bool) -> list[Path]:
    """Return the paths. Raises BadInput if a file is there already, unless with `force`."""
    folder = into or (Path("tests") if Path("tests").is_dir() else Path())
    folder.mkdir(parents=True, exist_ok=True)
    existing = [name for name in files if (folder / name).exists()]
    if existing and not force:
        raise BadInput(f"{', '.join(existing)} is in {folder} already; --force writes over it")
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in files]


async def _turns(pet: "Companion", ids: Sequence[str], newest: int | None) -> list[str]:
    """Return the ids of those named, or of the newest turns that ended."""
    if newest is None:
        return [(await pet.traces.find(id, pet.clock())).id for id in ids]
    found = await pet.traces.list(TraceFilter(), pet.clock(), newest)
    return [one.id for one in found if one.status not in ("running", "killed")]
