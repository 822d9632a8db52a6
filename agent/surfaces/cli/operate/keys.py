"""`hachi keys`: who may reach Hachi over the network, and for whom."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agent.surfaces.cli.options import Json, ShortId, clean, person
from agent.surfaces.cli.output import print_json, print_records, say, short, when
from agent.surfaces.cli.session import require, with_companion

if TYPE_CHECKING:
    from agent.companion import Companion
    from memory.sql.keys import Key

group = typer.Typer(help="Make and revoke the keys of `hachi serve`.", rich_markup_mode=None)

COLUMNS = ("id", "name", "kind", "user", "admin", "created", "last used", "revoked")


@group.command()
@with_companion
async def create(
    pet: "Companion",
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
    require(service != (user is not None), "give either --service, or --user NAME")
    kind: Literal["service", "user"] = "service" if service else "user"
    key, secret = await pet.services.keys.create(name, kind, user, admin, now=pet.clock())
    if json:
        print_json({"id": key.id, "key": secret} | asdict(key))
        return
    print(secret)
    say(f"this is key {short(key.id)}; it is not shown again, `hachi keys revoke {short(key.id)}` ends it")


@group.command("list")
@with_companion
async def list_keys(pet: "Companion", json: Json = False) -> None:
    """All keys, without their secrets."""
    empty = "there is no key yet; `hachi keys create NAME --user U` makes one"
    print_records(await pet.services.keys.all(), json, COLUMNS, _row, empty=empty)


@group.command()
@with_companion
async def revoke(pet: "Companion", id: ShortId) -> None:
    """End a key, at once and for good."""
    key = await pet.services.keys.revoke(id, pet.clock())
    print(f"revoked {short(key.id)}: {key.name}")


def _row(key: "Key") -> list[str]:
    times = map(when, (key.created_at, key.last_used_at, key.revoked_at))
    return [short(key.id), key.name, key.kind, key.user or "", "yes" if key.admin else "", *times]
