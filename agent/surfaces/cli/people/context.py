"""`hachi context`: what is known of a person as a whole, and how they want to be answered."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.surfaces.cli.options import Json, PlaceName, User, clean
from agent.surfaces.cli.output import console, plain, print_json, when
from agent.surfaces.cli.session import Session, running, say

if TYPE_CHECKING:
    from rich.tree import Tree

    from memory.people.profile import UserContext

group = typer.Typer(
    help="See and set what is known of a person: profile, preferences, themes.", rich_markup_mode=None
)

MODE = "mode"
"""What the conversation is for. It is set like a field, and is the conversation's, not the person's."""

FACTS = 7
"""How many are shown; `hachi memories list` shows all."""


@group.command()
@running
async def show(context: typer.Context, user: User, place: PlaceName = "dm", json: Json = False) -> None:
    """What is known of a person, as it may be known there."""
    session: Session = context.obj
    async with session.companion() as pet:
        known = await pet.context(user=user, place=place)
    if json:
        print_json(known.to_json())
    elif sections := list(_sections(known)):
        console().print(_tree(f"{user}, {when(known.last_updated)}".removesuffix(", "), sections))
    else:
        say(f"nothing is known of {user!r} here; `hachi context set name NAME` tells it a first thing")


@group.command("set")
@running
async def set_field(
    context: typer.Context,
    field: Annotated[
        str,
        typer.Argument(
            parser=clean, metavar="FIELD", help="name, timezone, language, tone, goals … or: mode."
        ),
    ],
    value: Annotated[
        str, typer.Argument(parser=clean, metavar="VALUE", help="Empty (''): forget it; of a list, all.")
    ],
    user: User,
    place: PlaceName = "dm",
    json: Json = False,
) -> None:
    """Set one field; a list such as goals gets one item more."""
    session: Session = context.obj
    async with session.companion() as pet:
        known = await pet.set_context(field, value, user=user, place=place)
    if json:
        print_json(known.to_json())
        return
    name, held = _held(known, field, value)
    print(plain(f"{name}: {held}") if held else f"{name} is forgotten")


def _held(known: "UserContext", field: str, value: str) -> tuple[str, str]:
    """The field by its own name, and what it is now."""
    if field.strip().casefold() == MODE:
        return MODE, value.strip()
    from memory.people.profile import field_named

    path = field_named(field)
    record: Any = known
    for name in path.split("."):
        record = getattr(record, name)
    return path, _text(record)


def _sections(known: "UserContext") -> Iterator[tuple[str, list[str]]]:
    """Titles with their lines; what is not known is left out."""
    for title, part in (("profile", known.profile), ("preferences", known.preferences)):
        fields = [(name.replace("_", " "), _text(value)) for name, value in part]
        if told := [f"{name}: {text}" for name, text in fields if text]:
            yield title, told
    if known.conversation_themes:
        yield "themes", [_text(known.conversation_themes)]
    if known.memory_summary:
        yield "summary", [known.memory_summary]
    if known.open_tasks:
        yield "open tasks", [f"{task.description} ({task.status})" for task in known.open_tasks]
    if known.long_term_facts:
        yield "core_facts facts", [fact.content for fact in known.long_term_facts[:FACTS]]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "; ".join(value) if isinstance(value, tuple) else value or ""


def _tree(title: str, sections: list[tuple[str, list[str]]]) -> "Tree":
    from rich.text import Text
    from rich.tree import Tree

    tree = Tree(Text(plain(title)), guide_style="dim")
    for name, lines in sections:
        branch = tree.add(Text(name, style="bold"))
        for line in lines:
            branch.add(Text(plain(line)))
    return tree
