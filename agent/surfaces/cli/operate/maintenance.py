"""`hachi purge`, `reindex` and `migrate`."""

from typing import Annotated

import typer

from agent.surfaces.cli.options import Json
from agent.surfaces.cli.output import memory_json, print_json, print_table, progress_bar, short, when
from agent.surfaces.cli.session import Session, running, say


@running
async def purge(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    json: Json = False,
) -> None:
    """Delete what has expired, everybody's, and what the settings on clean-up do not keep; says what went."""
    from memory.erasure.cleanup import CleanupItem

    session: Session = context.obj
    async with session.companion() as pet:
        if dry_run:
            leaving = await pet.preview_purge()
        else:
            leaving = [CleanupItem(memory, "expired") for memory in await pet.purge()] + await pet.tidy()
    if json:
        gone = [memory_json(one.memory) | {"reason": one.reason} for one in leaving]
        print_json({"count": len(gone), "dry_run": dry_run, "memories": gone})
        return
    if leaving:
        shown = [(one.memory, one.reason) for one in leaving]
        rows = [[short(m.id), m.user_id, m.content, when(m.expires_at), why] for m, why in shown]
        print_table(("id", "user", "content", "expires", "why"), rows)
    done = "would be deleted" if dry_run else "deleted"
    print(f"{len(leaving)} {'memory' if len(leaving) == 1 else 'memories'} {done}")


@running
async def reindex(context: typer.Context) -> None:
    """Build the index anew; what is remembered is in the database and stays as it is."""
    session: Session = context.obj
    async with session.companion() as pet:
        with progress_bar() as bar:
            rows = await pet.components.sync.due("")  # no index has the empty generation: all rows
            task = bar.add_task("indexing", total=rows)
            done = await pet.reindex(lambda count: bar.advance(task, count))
    say(f"the index is new: {done} entries are in it")


@running
async def migrate(context: typer.Context) -> None:
    """Bring the database's tables to the shape this version needs, and those of traces where they are in
    another."""
    session: Session = context.obj
    settings = session.settings()
    from memory.sql.engine import Database

    for name, url in (("DATABASE_URL", settings.database_url), ("HACHI_TRACES_URL", settings.traces_url)):
        if url is None and name == "HACHI_TRACES_URL":
            continue
        database = Database.connect(url.get_secret_value() if url else None, settings.home, name)
        try:
            done = await database.migrate()
            revision = await database.revision()
        finally:
            await database.close()
        print(f"{database.where}: {'brought to' if done else 'already at'} {revision}")
