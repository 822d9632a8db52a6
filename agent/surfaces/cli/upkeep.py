"""`hachi purge`, `reindex` and `migrate`."""

import typer

from agent.surfaces.cli.options import Json
from agent.surfaces.cli.session import Session, running, say
from agent.surfaces.cli.shown import memory_json, print_json, print_table, progress_bar, short, when


@running
async def purge(context: typer.Context, json: Json = False) -> None:
    """Delete what has expired, everybody's; says what went."""
    session: Session = context.obj
    async with session.companion() as pet:
        gone = await pet.purge()
    if json:
        print_json({"count": len(gone), "memories": [memory_json(memory) for memory in gone]})
        return
    if gone:
        rows = [[short(m.id), m.user_id, m.content, when(m.expires_at)] for m in gone]
        print_table(("id", "user", "content", "expired"), rows)
    print(f"{len(gone)} expired {'memory' if len(gone) == 1 else 'memories'} deleted")


@running
async def reindex(context: typer.Context) -> None:
    """Build the index anew; what is remembered is in the database and stays as it is."""
    session: Session = context.obj
    async with session.companion() as pet:
        with progress_bar() as bar:
            # No index has the empty generation, so this counts every row.
            rows = await pet.store.count_unindexed("") + await pet.transcript.count_unindexed("")
            task = bar.add_task("indexing", total=rows)
            done = await pet.reindex(lambda count: bar.advance(task, count))
    say(f"the index is new: {done} memories and messages are in it")


@running
async def migrate(context: typer.Context) -> None:
    """Bring the database's tables to the shape this version needs."""
    session: Session = context.obj
    settings = session.settings()
    from memory.database import Database

    url = settings.database_url.get_secret_value() if settings.database_url else None
    database = Database.connect(url, settings.home)
    try:
        done = await database.migrate()
        revision = await database.revision()
    finally:
        await database.close()
    print(f"{database.where}: {'brought to' if done else 'already at'} {revision}")
