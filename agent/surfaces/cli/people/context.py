"""`hachi context`: a person's profile, preferences, themes, tasks and most important facts."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.surfaces.cli.options import Json, PlaceName, User, clean
from agent.surfaces.cli.output import console, plain, print_json, say, when
from agent.surfaces.cli.session import with_companion

if TYPE_CHECKING:
    from rich.tree import Tree

    from agent.companion import Companion
    from memory.people.profile import UserContext

group = typer.Typer(
    help="See and set what is known of a person: profile, preferences, themes.", rich_markup_mode=None
)

MAX_FACTS = 7
"""Facts shown; `hachi memories list` shows all."""


@group.command()
@with_companion
async def show(pet: "Companion", user: User, place: PlaceName = "dm", json: Json = False) -> None:
    """What is known of a person, as it may be known there."""
    known = await pet.context(user=user, place=place)
    if json:
        print_json(known.to_json())
    elif sections := list(_sections(known)):
        console().print(_tree(f"{user}, {when(known.last_updated)}".removesuffix(", "), sections))
    else:
        say(f"nothing is known of {user!r} here; `hachi context set name NAME` tells it a first thing")


@group.command("set")
@with_companion
async def set_field(
    pet: "Companion",
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
    known = await pet.set_context(field, value, user=user, place=place)
    if json:
        print_json(known.to_json())
        return
    name, held = _current(known, field, value)
    print(plain(f"{name}: {held}") if held else f"{name} is forgotten")


def _current(known: "UserContext", field: str, value: str) -> tuple[str, str]:
    """The field's own name and its value now. The mode is the conversation's, not the person's."""
    if field.strip().casefold() == "mode":
        return "mode", value.strip()
    from memory.people.profile import field_named

    path = field_named(field)
    found: Any = known
    for name in path.split("."):
        found = getattr(found, name)
    return path, _text(found)


def _sections(known: "UserContext") -> Iterator[tuple[str, list[str]]]:
    """Titles with their lines, without what is empty."""
    for title, part in (("profile", known.profile), ("preferences", known.preferences)):
        fields = [(name.replace("_", " "), _text(value)) for name, value in part]
        if lines := [f"{name}: {text}" for name, text in fields if text]:
            yield title, lines
    if known.conversation_themes:
        yield "themes", [_text(known.conversation_themes)]
    if known.memory_summary:
        yield "summary", [known.memory_summary]
    if known.open_tasks:
        yield "open tasks", [f"{task.description} ({task.status})" for task in known.open_tasks]
    if known.long_term_facts:
        yield "most important facts", [fact.content for fact in known.long_term_facts[:MAX_FACTS]]


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
