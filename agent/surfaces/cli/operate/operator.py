"""`hachi stats`, `purge`, `reindex`, `migrate`, `keys` and `jobs`: for the operator."""

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.errors import BadInput
from agent.surfaces.cli.options import DryRun, OneUser, ShortId, Yes, user_option
from agent.surfaces.cli.output import (
    Output,
    confirm,
    give_back,
    must_ask,
    print_table,
    progress_bar,
    say,
    short,
    table_of,
    when,
)
from agent.surfaces.cli.session import Session, database_url, require, with_companion, with_session
from agent.types.records_json import memory_json

if TYPE_CHECKING:
    from agent.companion import Companion
    from memory.forgetting.cleanup import CleanupItem
    from memory.sql.jobs.job import ListedJob
    from memory.sql.keys import Key


keys = typer.Typer(help="Make and revoke the keys of `hachi serve`.", rich_markup_mode=None)

KEY_COLUMNS = ("id", "name", "kind", "user", "admin", "created", "last used", "revoked")
MAX_ROWS = 10
"""Subjects and days that `stats` shows; JSON has all."""
LABELS = {
    "types": "type",
    "subjects": "subject",
    "days": "day",
    "decisions": "decided",
    "look_backs": "consolidated",
}


@with_companion
async def stats(pet: "Companion", user: OneUser = None) -> Output:
    """Count memories, decisions and consolidations."""
    found = await pet.admin.statistics.memories(user)
    figures = await pet.admin.statistics.figures.totals(user)
    applied = figures["applied"]
    days = Counter(one.created_at.astimezone().date().isoformat() for one in found)
    counts = {
        "memories": len(found),
        "types": dict(Counter(one.type for one in found).most_common()),
        "subjects": dict(Counter(tag for one in found for tag in one.subjects).most_common()),
        "days": dict(sorted(days.items(), reverse=True)),
        "decisions": {action: figures[action] for action in ("add", "merge", "replace", "ignore")},
        "look_backs": {"applied": applied, "failed": figures["consolidations"] - applied},
    }
    return Output(counts, lambda: print_table(("what", "", "count"), _count_rows(counts)))


def _count_rows(counts: dict[str, Any]) -> list[list[str]]:
    rows = [["memories", "", str(counts["memories"])]]
    for name, label in LABELS.items():
        items = list(counts[name].items())
        rows += [[label, item, str(count)] for item, count in items[:MAX_ROWS]]
        if len(items) > MAX_ROWS:
            rows.append([label, f"… and {len(items) - MAX_ROWS} more", ""])
    return rows


@with_companion
async def purge(pet: "Companion", dry_run: DryRun = False) -> Output:
    """Delete what has expired, old traces, and what clean-up does not keep."""
    from memory.forgetting.cleanup import CleanupItem

    if dry_run:
        items = await pet.admin.preview_purge()
    else:
        items = [
            CleanupItem(memory, "expired") for memory in await pet.admin.purge()
        ] + await pet.admin.tidy()
        await pet.admin.prune_traces()
        await pet.admin.cut_log()
        await give_back(pet.admin)
    gone = [{**memory_json(one.memory), "reason": one.reason} for one in items]
    data = {"count": len(gone), "dry_run": dry_run, "memories": gone}
    return Output(data, lambda: _print_purged(items, "would be deleted" if dry_run else "deleted"))


def _print_purged(items: "list[CleanupItem]", done: str) -> None:
    if items:
        found = [(one.memory, one.reason) for one in items]
        rows = [[short(m.id), m.user_id, m.content, when(m.expires_at), why] for m, why in found]
        print_table(("id", "user", "content", "expires", "why"), rows)
    print(f"{len(items)} {'memory' if len(items) == 1 else 'memories'} {done}")


@with_companion
async def reindex(pet: "Companion") -> None:
    """Rebuild the index from the database, which stays as it is."""
    with progress_bar() as bar:
        task = bar.add_task("indexing", total=await pet.admin.rows_to_index())
        done = await pet.admin.reindex(lambda count: bar.advance(task, count))
    say(f"the index is new: {done} entries are in it")


@with_session
async def migrate(
    session: Session,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="PostgreSQL has been backed up.")] = False,
) -> None:
    """Make the database's tables, or bring those of an older version up to date."""
    settings = session.settings()
    from memory.sql.engine import Database

    database = Database.connect(database_url(settings), settings.home)
    try:
        done = await database.migrate(backed_up=yes)
        revision = await database.revision()
    finally:
        await database.close()
    print(f"{database.where}: {'brought to' if done else 'already at'} {revision}")


@keys.command()
@with_companion
async def create(
    pet: "Companion",
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
    service: Annotated[
        bool, typer.Option("--service", help="For a trusted service, which names the user of each request.")
    ] = False,
    user: Annotated[str | None, user_option(help="For that person alone.")] = None,
    admin: Annotated[bool, typer.Option("--admin", help="May also read metrics and traces.")] = False,
) -> Output:
    """Make a key. It is shown once, and stored nowhere."""
    require(service != (user is not None), "give either --service, or --user NAME")
    key, secret = await pet.admin.keys.create(
        name, "service" if service else "user", user, admin, now=pet.clock()
    )
    return Output({"id": key.id, "key": secret} | asdict(key), lambda: _print_secret(secret, short(key.id)))


def _print_secret(secret: str, id: str) -> None:
    print(secret)
    say(f"this is key {id}; it is not shown again, `hachi keys revoke {id}` ends it")


@keys.command("list")
@with_companion
async def list_keys(pet: "Companion") -> Output:
    """List all keys, without their secrets."""
    empty = "there is no key yet; `hachi keys create NAME --user U` makes one"
    return table_of(await pet.admin.keys.all(), KEY_COLUMNS, _key_row, empty=empty)


@keys.command()
@with_companion
async def revoke(pet: "Companion", id: ShortId) -> None:
    """End a key, at once and for good."""
    key = await pet.admin.keys.revoke(id, pet.clock())
    print(f"revoked {short(key.id)}: {key.name}")


def _key_row(key: "Key") -> list[str]:
    times = map(when, (key.created_at, key.last_used_at, key.revoked_at))
    return [short(key.id), key.name, key.kind, key.user or "", "yes" if key.admin else "", *times]


jobs = typer.Typer(help="See the background work, and what of it was given up.", rich_markup_mode=None)

JOB_COLUMNS = ("id", "kind", "user", "state", "failures", "crashes", "due", "last error")


@jobs.command("list")
@with_companion
async def list_jobs(
    pet: "Companion",
    given_up: Annotated[bool, typer.Option("--given-up", help="Only what is not tried any more.")] = False,
) -> Output:
    """List the work that is not done, oldest first."""
    found = await pet.components.queue.listed(given_up=given_up)
    return table_of(
        found, JOB_COLUMNS, _job_row, empty="no work is given up" if given_up else "no work is waiting"
    )


@jobs.command()
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
    work, now = pet.components.queue, pet.clock()
    chosen = [await work.named(id)] if id else await work.listed(given_up=True)
    done = await work.retry([job.id for job in chosen], now)
    return Output({"due": done}, lambda: say(f"{done} {'job is' if done == 1 else 'jobs are'} due now"))


@jobs.command()
@with_companion
async def drop(pet: "Companion", id: ShortId, yes: Yes = False) -> Output:
    """Delete a job. What it was to do is lost."""
    job = await pet.components.queue.named(id)
    if job.state == "running":
        raise BadInput(f"{short(job.id)} is running; drop it when it has ended")
    if must_ask(yes, "dropped"):
        confirm(f"Drop {job.kind} of {job.user_id}? What it was to do is lost.", "dropped")
    await pet.components.queue.drop(job.id)
    return Output({"dropped": job.id}, f"dropped {short(job.id)}: {job.kind} of {job.user_id}")


def _job_row(job: "ListedJob") -> list[str]:
    counts = [str(job.failures), str(job.crashes)]
    due = "" if job.state == "given up" else when(job.due_at)
    return [short(job.id), job.kind, job.user_id, job.state, *counts, due, job.last_error or ""]
