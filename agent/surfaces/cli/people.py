"""`hachi people`, `context`, `tasks` and `messages`: people, their profiles, tasks and messages."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.surfaces.cli.options import Before, Most, PlaceName, ShortId, User, Yes
from agent.surfaces.cli.output import (
    Columns,
    Output,
    confirm,
    forgotten,
    print_records,
    say,
    short,
    table_of,
    what_goes,
    when,
)
from agent.surfaces.cli.session import Companion, require, with_companion
from agent.types.records_json import decision_json, memory_json, message_json
from memory.records import TaskStatus

if TYPE_CHECKING:
    from memory.people.profile import UserContext

context = typer.Typer(help="See and change a person's profile.", rich_markup_mode=None)
people = typer.Typer(help="See whose data is stored, and people's other names.", rich_markup_mode=None)
tasks = typer.Typer(help="See and change tasks.", rich_markup_mode=None)
messages = typer.Typer(help="See and forget messages.", rich_markup_mode=None)

MAX_FACTS = 7
"""Maximum number of facts that are shown; `hachi memories list` shows all."""
PEOPLE: Columns = {
    "user": "user",
    "name": lambda person: "" if person.name == person.user else person.name,
    "messages": "messages",
    "memories": "memories",
    "open tasks": "tasks",
    "documents": "documents",
    "last message": "last_message",
}
ALIASES: Columns = {
    "id": lambda alias: short(alias[0].id),
    "person": lambda alias: alias[1],
    "is also called": lambda alias: alias[2],
    "told by": lambda alias: alias[0].user_id,
    "place": lambda alias: alias[0].place,
    "told": lambda alias: alias[0].created_at,
}
MESSAGES: Columns = {"id": "id", "author": "author", "text": "text", "sent": "sent_at"}


@people.command("list")
@with_companion
async def list_people(pet: Companion) -> Output:
    """List everybody about whom something is stored, and how much."""
    return table_of(await pet.admin.statistics.people(), PEOPLE, empty="nobody is known yet")


@people.command("link")
@with_companion
async def link_to_pages(pet: Companion, user: User) -> Output:
    """Print a link to your own pages, which works once within ten minutes.

    The address is HACHI_CONSOLE_URL, or that of `hachi serve` on this machine.
    """
    from agent.surfaces.links import link_to

    link = await link_to(pet, user, pet.settings.console_url or "http://127.0.0.1:8000")
    return Output({"link": link}, link)


Person = Annotated[str, typer.Argument(metavar="PERSON", help="A name under which they are remembered.")]
OtherName = Annotated[str, typer.Argument(metavar="NAME", help="Another name of theirs.")]


@people.command("alias")
@with_companion
async def add_alias(
    pet: Companion, person: Person, name: OtherName, user: User, place: PlaceName = "dm"
) -> Output:
    """Give a person another name.

    A search for either name then finds what is remembered under both.
    """
    decision = await pet.people.alias(person, name, user=user, place=place)
    return Output(decision_json(decision), f"{decision.content} ({decision.reason})")


@people.command("aliases")
@with_companion
async def list_aliases(pet: Companion, user: User, place: PlaceName = "dm") -> Output:
    """List the people who have several names, newest first."""
    aliases = await pet.people.aliases(user=user, place=place)
    empty = "nobody is known by another name here"
    return table_of(aliases, ALIASES, empty=empty, to_json=lambda alias: memory_json(alias[0]))


@people.command("unalias")
@with_companion
async def remove_alias(
    pet: Companion, person: Person, name: OtherName, user: User, place: PlaceName = "dm"
) -> Output:
    """Forget that a person has this other name."""
    receipt = await pet.people.forget_alias(person, name, user=user, place=place)
    return forgotten(receipt, receipt.content)


@context.command()
@with_companion
async def show(pet: Companion, user: User, place: PlaceName = "dm") -> Output:
    """Show the profile, facts and tasks of a person that may be read in the place."""
    known = await pet.people.context(user=user, place=place)
    return Output(known.to_json(), lambda: print_context(user, known))


@context.command("set")
@with_companion
async def set_field(
    pet: Companion,
    field: Annotated[
        str, typer.Argument(metavar="FIELD", help="name, timezone, language, tone, goals …, or mode.")
    ],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="An empty value ('') clears the field.")],
    user: User,
    place: PlaceName = "dm",
) -> Output:
    """Set one field. A list such as goals gets one more item."""
    known = await pet.people.set_context(field, value, user=user, place=place)
    done = f"{field.strip()}: {value.strip()}" if value.strip() else f"{field.strip()} is forgotten"
    return Output(known.to_json(), done)


def print_context(user: str, context: "UserContext") -> None:
    sections = [f"{name}\n" + "\n".join(f"  {line}" for line in lines) for name, lines in _sections(context)]
    if not sections:
        say(f"nothing is known of {user!r} here; `hachi context set name NAME` tells it a first thing")
        return
    Output(None, "\n".join([f"{user}, {when(context.last_updated)}".removesuffix(", "), *sections])).print(
        False
    )


def _sections(known: "UserContext") -> Iterator[tuple[str, list[str]]]:
    """Yield titles with their lines, without empty sections."""
    for title, part in (("profile", known.profile), ("preferences", known.preferences)):
        fields = [(name.replace("_", " "), _text(value)) for name, value in part]
        if lines := [f"{name}: {text}" for name, text in fields if text]:
            yield title, lines
    if known.conversation_themes:
        yield "themes", [_text(known.conversation_themes)]
    if known.memory_summary:
        yield "summary", [known.memory_summary]
    if known.open_tasks:
        zone = known.zone if known.profile.timezone else None
        due = [f", due {_by_clock(task.due, zone)}" if task.due else "" for task in known.open_tasks]
        tasks = zip(known.open_tasks, due, strict=True)
        yield "open tasks", [f"{task.description} ({task.status}{due})" for task, due in tasks]
    if known.long_term_facts:
        yield "most important facts", [fact.content for fact in known.long_term_facts[:MAX_FACTS]]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "; ".join(value) if isinstance(value, tuple) else value or ""


def _by_clock(time: datetime | None, zone: tzinfo | None) -> str:
    return f"{time.astimezone(zone):%Y-%m-%d %H:%M}" if time else ""


Due = Annotated[
    str | None,
    typer.Option(
        metavar="TIME|never",
        help="In the person's time zone: tomorrow 9am, friday 17:30, in 2 hours, 2026-01-10 (at nine).",
    ),
]


def task_columns(zone: tzinfo | None) -> Columns:
    """Return the columns of tasks, with times in this zone; None is the zone of this machine."""
    return {
        "id": "id",
        "description": "description",
        "status": "status",
        "due": lambda task: _by_clock(task.due, zone),
        "changed": lambda task: _by_clock(task.last_updated, zone),
    }


@tasks.command("list")
@with_companion
async def list_tasks(
    pet: Companion,
    user: User,
    all: Annotated[bool, typer.Option("--all", help="Finished ones too.")] = False,
) -> Output:
    """List the open tasks, newest first. Times are in the person's time zone."""
    columns = task_columns(await pet.people.zone(user=user))
    empty = f"no {'' if all else 'open '}tasks for {user!r}"
    return table_of(await pet.tasks.list(user=user, done=all), columns, empty=empty)


@tasks.command()
@with_companion
async def add(
    pet: Companion,
    description: Annotated[str, typer.Argument(metavar="TEXT", help="What is to be done.")],
    user: User,
    due: Due = None,
) -> Output:
    """Create a task, with a reminder if it is due at a time."""
    require(bool(description.strip()), "say what is to be done")
    return await _change(pet, user, None, description, None, due)


@tasks.command()
@with_companion
async def update(
    pet: Companion,
    id: Annotated[str, typer.Argument(metavar="ID|new", help="The id or its beginning, or `new`.")],
    user: User,
    description: Annotated[str, typer.Option(metavar="TEXT")] = "",
    status: Annotated[TaskStatus | None, typer.Option()] = None,
    due: Due = None,
) -> Output:
    """Change a task."""
    new, described = id == "new", bool(description.strip())
    require(described or not new, "a new task needs a --description")
    require(new or described or bool(status or due), "say what is to change")
    return await _change(pet, user, None if new else id, description, status, due)


async def _change(
    pet: Companion, user: str, id: str | None, description: str, status: TaskStatus | None, due: str | None
) -> Output:
    change = await pet.tasks.update(description, user=user, status=status, id=id, due=due, alike=False)
    if id is None and change.action != "made":
        say(f"task {short(change.task.id)} has the same words, so there is no second one")
    columns = task_columns(await pet.people.zone(user=user))
    return Output(asdict(change.task), lambda: print_records(columns, [change.task]))


@messages.command("list")
@with_companion
async def list_messages(
    pet: Companion, user: User, place: PlaceName = "dm", limit: Most = 20, before: Before = None
) -> Output:
    """List messages and replies, newest first."""
    page = await pet.conversations.messages(user=user, place=place, limit=limit, before=before)
    empty = f"no {'older ' if before else ''}messages of {user!r} here"
    return table_of(page, MESSAGES, empty=empty, to_json=message_json)


@messages.command("delete")
@with_companion
async def delete_message(pet: Companion, id: ShortId, user: User, yes: Yes = False) -> Output:
    """Forget one of your messages.

    Also forgets the reply to it and the facts that have no other evidence.
    """
    message = await pet.conversations.message(id, user=user)

    async def preview() -> str:
        return what_goes(await pet.conversations.preview_forget(message.id, user=user))

    await confirm(yes, "forgotten", "Forget it, with the reply and what was learned from it?", preview)
    receipt = await pet.conversations.forget(message.id, user=user)
    return forgotten(receipt, f"{short(message.id)}: {message.text}")
