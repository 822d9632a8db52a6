"""`hachi traces replay` and `hachi traces to-test`: replay turns, and make tests of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from agent.errors import BadInput
from agent.surfaces.cli.output import Output, progress_bar, say
from agent.surfaces.cli.session import require, with_companion
from agent.surfaces.cli.traces.options import TraceId
from agent.tracing.filters import TraceFilter

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.replay.replay import NotReplayed, Replayed
    from agent.tracing.render.tree import Line
    from agent.tracing.trace import Summary

CHANGED = 3
"""The exit code if a turn went differently: 1 is an error, 2 a mistyped command."""


@with_companion
async def replay(
    pet: "Companion",
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Ids, their first characters, or `last`."),
    ] = None,
    newest: Annotated[
        int | None, typer.Option("--newest", min=1, metavar="N", help="The newest N turns instead.")
    ] = None,
    memory: Annotated[
        Literal["recorded", "today"],
        typer.Option("--memory", help="What the tools found then, or what they find today."),
    ] = "recorded",
    model: Annotated[
        Literal["recorded", "live"],
        typer.Option("--model", help="The recorded outputs, or the model of the settings."),
    ] = "recorded",
    from_call: Annotated[
        int | None,
        typer.Option("--from", min=1, metavar="N", help="Ask a live model from call N on, 1 by default."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Every difference, and each text whole.")] = False,
) -> Output:
    """Replay turns from their traces with today's prompts, settings and code.

    Nothing is written. Shows the first difference. Exit 0 if nothing differs, 3 if something does.
    """
    require(bool(ids) != bool(newest), "name the turns by their ids, or --newest N")
    require(model == "live" or from_call is None, "--from N needs --model live")
    from agent.replay.replay import ReplayOptions, replay, replay_each

    options = ReplayOptions(memory=memory, fork=(from_call or 1) if model == "live" else None)
    if ids and len(ids) == 1:  # what cannot be replayed is an error
        replayed = Replays([await replay(pet, await pet.traces.get_with_jobs(ids[0], pet.clock()), options)])
    else:
        turns = await _turns(pet, ids or [], newest)
        with progress_bar() as bar:
            track = bar.track(turns, description="replaying")
            replayed = Replays([one async for one in replay_each(pet, track, options)])
    return Output(replayed.json(), lambda: replayed.print(full=full), 0 if replayed.same else CHANGED)


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


async def _turns(pet: "Companion", ids: Sequence[str], newest: int | None) -> "list[Summary]":
    """Return those named, or the newest turns that ended."""
    if newest is None:
        return [await pet.traces.find(id, pet.clock()) for id in ids]
    found = await pet.traces.list(TraceFilter(), pet.clock(), newest)
    return [one for one in found if one.status not in ("running", "killed")]


@dataclass(frozen=True)
class Replays:
    """What came of replaying several turns."""

    each: "Sequence[Replayed | NotReplayed]"

    @property
    def done(self) -> "list[Replayed]":
        from agent.replay.replay import Replayed

        return [one for one in self.each if isinstance(one, Replayed)]

    @property
    def same(self) -> bool:
        return all(one.same for one in self.done)

    def json(self) -> list[dict[str, Any]]:
        return [_as_json(one) for one in self.each]

    def print(self, *, full: bool) -> None:
        """Print each turn in short, and what they have in common."""
        from agent.replay.replay import causes
        from agent.surfaces.cli.traces.lines import print_lines
        from agent.tracing.render.text import count, one_line

        print_lines(line for one in self.each for line in _lines(one, full=full))
        done = self.done
        if len(self.each) > 1:
            changed, skipped = sum(not one.same for one in done), len(self.each) - len(done)
            more = f", {skipped} not replayed" if skipped else ""
            print(f"{len(done)} replayed: {len(done) - changed} same, {changed} changed{more}")
            for what, turns, otherwise in causes(done):
                print(f"{count(turns, 'turn')}: {one_line(what)}; {otherwise or 'none'} went otherwise")


def _as_json(one: "Replayed | NotReplayed") -> dict[str, Any]:
    from agent.replay.replay import NotReplayed
    from agent.tracing.trace import span_json

    if isinstance(one, NotReplayed):
        return {"id": one.summary.id, "not_replayed": one.why}
    return {
        "id": one.before.trace.id,
        "same": one.same,
        "behaves_otherwise": one.behaves_otherwise,
        "memory": one.options.memory,
        "forked_at": one.options.fork,
        "differences": [asdict(difference) for difference in one.differences],
        "root": span_json(one.after.root),
    }


def _lines(replayed: "Replayed | NotReplayed", *, full: bool) -> "Iterator[Line]":
    from agent.replay.replay import NotReplayed
    from agent.surfaces.cli.traces.lines import difference_lines, text_lines_of
    from agent.tracing.render.text import one_line
    from agent.tracing.render.trace import heading
    from agent.tracing.render.tree import Line

    if isinstance(replayed, NotReplayed):
        yield Line("", f"not replayed: {one_line(replayed.why)}", "faint")
        return
    before, after = replayed.before.trace.summary, replayed.after.summary
    if replayed.same:
        yield Line("", f"same     {heading(before)}", "good")
        return
    first, *others = replayed.differences
    yield Line("", f"CHANGED  {heading(before)}", "bad")
    yield Line("", f"first difference: {one_line(f'{first.where} {first.what}')}", "strong")
    if full:
        yield from list(difference_lines(before, after, replayed.differences, whole=True))[3:]
    else:
        yield from text_lines_of(first, whole=False)
        if others:
            yield Line("", f"… and {len(others)} more that may follow from it; --full shows them", "faint")
    if replayed.options.fork is not None:
        yield Line("", f"from call {replayed.options.fork} on the model of today was asked", "faint")
        reply = replayed.after.root.data.get("reply", {}).get("message", "")
        yield Line("", f"→ {one_line(reply or replayed.after.root.error or '')}")
