"""`hachi stats`, `purge`, `reindex`, `keys` and `jobs`: commands for the operator."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.errors import BadInput
from agent.surfaces.cli.options import DryRun, OneUser, ShortId, Yes, user_option
from agent.surfaces.cli.output import (
    Columns,
    Output,
    confirm,
    give_back,
    print_records,
    print_table,
    progress_bar,
    say,
    short,
    table_of,
)
from agent.surfaces.cli.session import Companion, require, with_companion
from agent.types.records_json import memory_json

if TYPE_CHECKING:
    from memory.forgetting.cleanup import CleanupItem

keys = typer.Typer(help="Create and revoke the keys of `hachi serve`.", rich_markup_mode=None)
jobs = typer.Typer(help="See background jobs, and those that were given up.", rich_markup_mode=None)

MAX_ROWS = 10
"""Maximum number of subjects and days that `stats` shows; JSON has all."""
LABELS = {
    "types": "type",
    "subjects": "subject",
    "days": "day",
    "decisions": "decided",
    "look_backs": "consolidated",
}
KEYS: Columns = {
    **{name: name for name in ("id", "name", "kind", "user", "admin")},
    "created": "created_at",
    "last used": "last_used_at",
    "revoked": "revoked_at",
}
JOBS: Columns = {
    "id": "id",
    "kind": "kind",
    "user": "user_id",
    "state": "state",
    "failures": "failures",
    "crashes": "crashes",
    "due": lambda job: None if job.state == "given up" else job.due_at,
    "last error": "last_error",
}
PURGED: Columns = {
    "id": lambda item: short(item.memory.id),
    "user": lambda item: item.memory.user_id,
    "content": lambda item: item.memory.content,
    "expires": lambda item: item.memory.expires_at,
    "why": "reason",
}


@with_companion
async def stats(pet: Companion, user: OneUser = None) -> Output:
    """Count memories, decisions and consolidations."""
    memories = await pet.admin.statistics.memories(user)
    figures = await pet.admin.statistics.figures.totals(user)
    applied = figures["applied"]
    days = Counter(one.created_at.astimezone().date().isoformat() for one in memories)
    counts = {
        "memories": len(memories),
        "types": dict(Counter(one.type for one in memories).most_common()),
        "subjects": dict(Counter(tag for one in memories for tag in one.subjects).most_common()),
        "days": dict(sorted(days.items(), reverse=True)),
        "decisions": {action: figures[action] for action in ("add", "merge", "replace", "ignore")},
        "look_backs": {"applied": applied, "failed": figures["consolidations"] - applied},
    }
    return Output(counts, lambda: print_table(("what", "", "count"), _count_rows(counts)))


def _count_rows(counts: dict[str, Any]) -> Iterator[list[str]]:
    yield ["memories", "", str(counts["memories"])]
    for name, label in LABELS.items():
        items = list(counts[name].items())
        yield from ([label, item, str(count)] for item, count in items[:MAX_ROWS])
        if len(items) > MAX_ROWS:
            yield [label, f"… and {len(items) - MAX_ROWS} more", ""]


@with_companion
async def purge(pet: Companion, dry_run: DryRun = False) -> Output:
    """Delete what has expired, old traces, and what clean-up no longer needs."""
    items = await (pet.admin.preview_purge() if dry_run else _purge(pet))
    gone = [{**memory_json(one.memory), "reason": one.reason} for one in items]
    done = f"{'memory' if len(items) == 1 else 'memories'} {'would be ' if dry_run else ''}deleted"

    def text() -> None:
        if items:
            print_records(PURGED, items)
        print(f"{len(items)} {done}")

    return Output({"count": len(gone), "dry_run": dry_run, "memories": gone}, text)


async def _purge(pet: Companion) -> "list[CleanupItem]":
    from memory.forgetting.cleanup import CleanupItem

    expired = [CleanupItem(memory, "expired") for memory in await pet.admin.purge()]
    items = expired + await pet.admin.tidy()
    await pet.admin.prune_traces()
    await pet.admin.cut_log()
    await give_back(pet.admin)
    return items


@with_companion
async def reindex(pet: Companion) -> None:
    """Rebuild the index from the database. The database does not change."""
    with progress_bar() as bar:
        task = bar.add_task("indexing", total=await pet.admin.rows_to_index())
        done = await pet.admin.reindex(lambda count: bar.advance(task, count))
    say(f"the index is new: {done} entries are in it")


@keys.command()
@with_companion
async def create(
    pet: Companion,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
    service: Annotated[
        bool, typer.Option("--service", help="For a trusted service, which names the user of each request.")
    ] = False,
    user: Annotated[str | None, user_option(help="For that person alone.")] = None,
    admin: Annotated[bool, typer.Option("--admin", help="May also read metrics and traces.")] = False,
) -> Output:
    """Create a key. It is shown once, and stored nowhere."""
    require(service != (user is not None), "give either --service, or --user NAME")
    key, secret = await pet.admin.keys.create(
        name, "service" if service else "user", user, admin, now=pet.clock()
    )

    def text() -> None:
        print(secret)
        id = short(key.id)
        say(f"this is key {id}; it is not shown again, `hachi keys revoke {id}` ends it")

    return Output({"id": key.id, "key": secret} | asdict(key), text)


@keys.command("list")
@with_companion
async def list_keys(pet: Companion) -> Output:
    """List all keys, without their secrets."""
    empty = "there is no key yet; `hachi keys create NAME --user U` makes one"
    return table_of(await pet.admin.keys.all(), KEYS, empty=empty)


@keys.command()
@with_companion
async def revoke(pet: Companion, id: ShortId) -> None:
    """Revoke a key, at once and for good."""
    key = await pet.admin.keys.revoke(id, pet.clock())
    print(f"revoked {short(key.id)}: {key.name}")


@jobs.command("list")
@with_companion
async def list_jobs(
    pet: Companion,
    given_up: Annotated[bool, typer.Option("--given-up", help="Only jobs that were given up.")] = False,
) -> Output:
    """List the jobs that are not done, oldest first."""
    empty = "no work is given up" if given_up else "no work is waiting"
    return table_of(await pet.components.queue.listed(failed=given_up), JOBS, empty=empty)


@jobs.command()
@with_companion
async def retry(
    pet: Companion,
    id: Annotated[
        str | None,
        typer.Argument(
            metavar="ID", help="The id, or its first 8 characters. Default: all jobs that were given up."
        ),
    ] = None,
) -> Output:
    """Make jobs due now, and reset their failures. A running Hachi starts them within seconds; else the next
    one does."""
    work, now = pet.components.queue, pet.clock()
    chosen = [await work.named(id)] if id else await work.listed(failed=True)
    done = await work.retry([job.id for job in chosen], now)
    return Output({"due": done}, lambda: say(f"{done} {'job is' if done == 1 else 'jobs are'} due now"))


@jobs.command()
@with_companion
async def drop(pet: Companion, id: ShortId, yes: Yes = False) -> Output:
    """Delete a job. Its work is not done."""
    job = await pet.components.queue.named(id)
    if job.state == "running":
        raise BadInput(f"{short(job.id)} is running; drop it when it has ended")
    await confirm(yes, "dropped", f"Drop {job.kind} of {job.user_id}? What it was to do is lost.")
    await pet.components.queue.drop(job.id)
    return Output({"dropped": job.id}, f"dropped {short(job.id)}: {job.kind} of {job.user_id}")
