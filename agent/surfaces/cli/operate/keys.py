"""`hachi keys`: who may reach Hachi over the network, and for whom."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.surfaces.cli.options import Json, clean, person
from agent.surfaces.cli.output import print_json, print_table, short, when
from agent.surfaces.cli.session import Session, running, say, wants

if TYPE_CHECKING:
    from memory.sql.keys import Key

group = typer.Typer(help="Make and revoke the keys of `hachi serve`.", rich_markup_mode=None)

COLUMNS = ("id", "name", "kind", "user", "admin", "created", "last used", "revoked")


@group.command()
@running
async def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(parser=clean, metavar="NAME", help="What to call it.")],
    service: Annotated[
        bool, typer.Option("--service", help="For a trusted service, which says for whom it asks.")
    ] = False,
    user: Annotated[
        str | None,
        typer.Option("--user", "-u", parser=person, metavar="NAME", help="Acts for that person alone."),
    ] = None,
    admin: Annotated[bool, typer.Option("--admin", help="May read the figures, too.")] = False,
    json: Json = False,
) -> None:
    """Make a key. It is shown once, and kept nowhere."""
    session: Session = context.obj
    wants(service != (user is not None), "give either --service, or --user NAME")
    async with session.companion() as pet:
        kind, now = ("service" if service else "user"), pet.clock()
        key, secret = await pet.services.keys.create(name, kind, user, admin, now=now)  # type: ignore[arg-type]
    if json:
        print_json({"id": key.id, "key": secret} | _shown(key))
        return
    print(secret)
    say(f"this is key {short(key.id)}; it is not shown again, `hachi keys revoke {short(key.id)}` ends it")


@group.command("list")
@running
async def list_keys(context: typer.Context, json: Json = False) -> None:
    """All keys, without their secrets."""
    session: Session = context.obj
    async with session.companion() as pet:
        found = await pet.services.keys.all()
    if json:
        print_json([_shown(key) for key in found])
    elif found:
        print_table(COLUMNS, [_row(key) for key in found])
    else:
        say("there is no key yet; `hachi keys create NAME --user U` makes one")


@group.command()
@running
async def revoke(
    context: typer.Context,
    id: Annotated[
        str, typer.Argument(parser=clean, metavar="ID", help="Its id, or the first 8 characters of it.")
    ],
) -> None:
    """End a key, at once and for good."""
    session: Session = context.obj
    async with session.companion() as pet:
        key = await pet.services.keys.revoke(id, pet.clock())
    print(f"revoked {short(key.id)}: {key.name}")


def _shown(key: "Key") -> dict[str, Any]:
    return asdict(key)


def _row(key: "Key") -> list[str]:
    return [
        short(key.id),
        key.name,
        key.kind,
        key.user or "",
        "yes" if key.admin else "",
        when(key.created_at),
        when(key.last_used_at),
        when(key.revoked_at),
    ]
