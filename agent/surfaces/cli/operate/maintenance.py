"""`hachi purge`, `reindex` and `migrate`."""

from typing import TYPE_CHECKING, Annotated

import typer

from agent.surfaces.cli.options import Json
from agent.surfaces.cli.output import print_json, print_table, progress_bar, say, short, when
from agent.surfaces.cli.session import Session, async_command, with_companion
from memory.records import memory_json

if TYPE_CHECKING:
    from agent.companion import Companion


@with_companion
async def purge(
    pet: "Companion",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    json: Json = False,
) -> None:
    """Delete what has expired, everybody's, and what the settings on clean-up do not keep; says what went."""
    from memory.erasure.cleanup import CleanupItem

    if dry_run:
        items = await pet.preview_purge()
    else:
        items = [CleanupItem(memory, "expired") for memory in await pet.purge()] + await pet.tidy()
    if json:
        gone = [memory_json(one.memory) | {"reason": one.reason} for one in items]
        print_json({"count": len(gone), "dry_run": dry_run, "memories": gone})
        return
    if items:
        found = [(one.memory, one.reason) for one in items]
        rows = [[short(m.id), m.user_id, m.content, when(m.expires_at), why] for m, why in found]
        print_table(("id", "user", "content", "expires", "why"), rows)
    done = "would be deleted" if dry_run else "deleted"
    print(f"{len(items)} {'memory' if len(items) == 1 else 'memories'} {done}")


@with_companion
async def reindex(pet: "Companion") -> None:
    """Build the index anew; what is remembered is in the database and stays as it is."""
    with progress_bar() as bar:
        task = bar.add_task("indexing", total=await pet.services.maintenance.rows_to_index())
        done = await pet.reindex(lambda count: bar.advance(task, count))
    say(f"the index is new: {done} entries are in it")


@async_command
async def migrate(context: typer.Context) -> None:
    """Bring the database's tables to the shape this version needs, and those of traces where they are in
    another."""
    session: Session = context.obj
    settings = session.settings()
    from memory.sql.engine import Database

    urls = {"DATABASE_URL": settings.database_url}
    if settings.traces_url is not None:
        urls["HACHI_TRACES_URL"] = settings.traces_url
    for name, url in urls.items():
        database = Database.connect(url.get_secret_value() if url else None, settings.home, name)
        try:
            done = await database.migrate()
            revision = await database.revision()
        finally:
            await database.close()
        print(f"{database.where}: {'brought to' if done else 'already at'} {revision}")
