"""`hachi traces export` and `prune`: traces as a file, and away with old ones."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from agent.surfaces.cli.options import Json
from agent.surfaces.cli.output import print_json
from agent.surfaces.cli.session import Session, running, say
from agent.surfaces.cli.traces.options import TraceIds, since


@running
async def export(
    context: typer.Context,
    ids: TraceIds,
    format: Annotated[Literal["json", "md", "html", "otlp"], typer.Option("--format")] = "json",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Unset or - is stdout.")
    ] = None,
) -> None:
    """Write traces, with what was done after them, as one file: JSON, Markdown, HTML or OTLP/JSON."""
    session: Session = context.obj
    from agent.tracing.export import exported

    async with session.traces() as traces:
        found = [await traces.get_with_jobs(id, datetime.now(UTC)) for id in ids]
    text = exported(found, format)
    if output is None or str(output) == "-":
        sys.stdout.write(text)
        return
    _write(output, text)
    say(f"{len(found)} {'trace is' if len(found) == 1 else 'traces are'} in {output}")


def _write(path: Path, text: str) -> None:
    """All of it or nothing, and for the owner's eyes alone: it holds what people said."""
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
            out.write(text)
        half.replace(path)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error


@running
async def prune(
    context: typer.Context,
    older: Annotated[
        datetime, typer.Option(parser=since, metavar="TIME", help="Than this: 30d, 2w, 2026-01-10.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Delete old traces, everybody's. They go by themselves after HACHI_TRACE_DAYS."""
    session: Session = context.obj
    from agent.tracing.render.text import count, when
    from agent.tracing.store import TraceFilter

    kept = TraceFilter(since=older, kinds=frozenset())
    async with session.traces() as traces:
        old = await traces.count(TraceFilter(kinds=frozenset())) - await traces.count(kept)
        if not dry_run and not yes and old and sys.stdin is not None and sys.stdin.isatty():
            print(f"{count(old, 'trace')} from before {when(older)}")
            if not typer.confirm("Delete them for good?"):
                say("nothing was deleted")
                raise typer.Exit(1)
        if not dry_run:
            old = await traces.prune(older)
    if json:
        print_json({"count": old, "dry_run": dry_run, "before": older})
    else:
        print(f"{count(old, 'trace')} {'would be deleted' if dry_run else 'deleted'}")
