"""`hachi jobs`: the background work, for the operator. It never shows what a job is about."""

from typing import TYPE_CHECKING, Annotated

import typer

from agent.errors import BadInput
from agent.surfaces.cli.options import ShortId, Yes
from agent.surfaces.cli.output import Output, confirm, must_ask, say, short, table_of, when
from agent.surfaces.cli.session import with_companion

if TYPE_CHECKING:
    from agent.companion import Companion
    from memory.sql.jobs import ListedJob

group = typer.Typer(help="See the background work, and what of it was given up.", rich_markup_mode=None)

COLUMNS = ("id", "kind", "user", "state", "failures", "crashes", "due", "last error")


@group.command("list")
@with_companion
async def list_jobs(
    pet: "Companion",
    given_up: Annotated[bool, typer.Option("--given-up", help="Only what is not tried any more.")] = False,
) -> Output:
    """List the work that is not done, oldest first."""
    found = await pet.admin.jobs.listed(pet.clock(), given_up=given_up)
    return table_of(found, COLUMNS, _row, empty="no work is given up" if given_up else "no work is waiting")


@group.command()
@with_companion
async def retry(
    pet: "Companion",
    id: Annotated[
        str | None,
        typer.Argument(
            metavar="ID", help="The id, or its first 8 characters. Default: all that was given up."
        ),
    ] = None,
) -> Output:
    """Make work due now, as if it had never failed. A Hachi that runs takes it up within seconds, or else the
    next one that starts."""
    jobs, now = pet.admin.jobs, pet.clock()
    chosen = [await jobs.named(id, now)] if id else await jobs.listed(now, given_up=True)
    done = await jobs.retry([job.id for job in chosen], now)
    return Output({"due": done}, lambda: say(f"{done} {'job is' if done == 1 else 'jobs are'} due now"))


@group.command()
@with_companion
async def drop(pet: "Companion", id: ShortId, yes: Yes = False) -> Output:
    """Delete a job. What it was to do is lost."""
    from memory.sql.jobs import FORGET_OUTSIDE

    job = await pet.admin.jobs.named(id, pet.clock())
    if job.kind == FORGET_OUTSIDE:
        raise BadInput(f"{short(job.id)} finishes a deletion; run `hachi jobs retry {short(job.id)}` instead")
    if job.state == "running":
        raise BadInput(f"{short(job.id)} is running; drop it when it has ended")
    if must_ask(yes, "dropped"):
        confirm(f"Drop {job.kind} of {job.user_id}? What it was to do is lost.", "dropped")
    await pet.admin.jobs.done(job.id)
    return Output({"dropped": job.id}, f"dropped {short(job.id)}: {job.kind} of {job.user_id}")


def _row(job: "ListedJob") -> list[str]:
    counts = [str(job.failures), str(job.crashes)]
    due = "" if job.state == "given up" else when(job.due_at)
    return [short(job.id), job.kind, job.user_id, job.state, *counts, due, job.last_error or ""]
