"""`hachi memories why`: explain why a memory was in the prompt, or was not."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.surfaces.cli.options import user_option
from agent.surfaces.cli.output import Output
from agent.surfaces.cli.session import with_companion
from agent.surfaces.cli.traces.lines import print_lines
from agent.tracing.render.text import one_line, when
from agent.tracing.render.tree import Line, Tone
from agent.tracing.trace import Summary

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.tracing.trace import Summary
    from agent.tracing.why.gates import Why


@with_companion
async def why(
    pet: "Companion",
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
    told = (line for pair in pairs for line in _lines(*pair))
    return Output([_as_json(*pair) for pair in pairs], lambda: print_lines(told, whole=True))


def _as_json(one: "Why", traces: Sequence[tuple[Summary, str]]) -> dict[str, Any]:
    told = asdict(one) | {"given": one.received, "stopped_at": one.stopped_at and one.stopped_at.name}
    del told["in_turn"]
    return told | {"traces": [{"id": summary.id, "part": part} for summary, part in traces]}


def _lines(one: "Why", traces: Sequence[tuple[Summary, str]]) -> Iterator[Line]:

    end = {None: "", True: "  given to the model", False: "  not given to the model"}[one.received]
    end += f": {one.stopped_at.name}" if one.stopped_at else ""
    yield Line("", f"{one.id[:8]}  {one_line(one.content or '(forgotten)')}{end}", "strong")
    for gate in one.gates:
        tone: Tone = "good" if gate.passed else "bad" if gate == one.stopped_at else "faint"
        text = f"{'✓' if gate.passed else '✗'} {gate.name}: {gate.value}".removesuffix(": ")
        yield Line("  ", one_line(text), tone)
    for summary, part in traces:
        yield Line("  ", f"{summary.short}  {when(summary.started_at)}  {one_line(part)}", "faint")
