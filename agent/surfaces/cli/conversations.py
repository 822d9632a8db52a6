"""`hachi conversations`: what was talked of, to read and to forget as a whole."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.surfaces.cli.options import Most, PlaceName, User, Yes
from agent.surfaces.cli.output import (
    Output,
    confirm,
    forgotten_text,
    must_ask,
    plain,
    print_table,
    table_of,
    when,
)
from agent.surfaces.cli.session import with_companion
from agent.types.records_json import forgotten_json, message_json
from memory.records import Conversation

if TYPE_CHECKING:
    from agent.companion import Companion

group = typer.Typer(help="See and forget conversations.", rich_markup_mode=None)
Id = Annotated[str, typer.Argument(metavar="ID", help="The whole id, as `list` prints it.")]
COLUMNS = ("id", "place", "begins", "messages", "last message")
BEGINS = 60
"""Characters of a first message in a list."""


@group.command("list")
@with_companion
async def list_conversations(
    pet: "Companion", user: User, place: PlaceName = "dm", limit: Most = 20
) -> Output:
    """List conversations, from whichever client, the one with the newest message first."""
    found = await pet.conversations.list(user=user, place=place, limit=limit)
    empty = f"no conversations of {user!r} here"
    return table_of(found, COLUMNS, _row, empty=empty)


def _row(one: Conversation) -> list[str]:
    title = one.title if len(one.title) <= BEGINS else f"{one.title[:BEGINS]}…"
    return [one.id, one.place, title, str(one.messages), when(one.last_at)]


@group.command()
@with_companion
async def show(
    pet: "Companion",
    id: Id,
    user: User,
    place: PlaceName = "dm",
    limit: Most = 20,
    before: Annotated[
        str | None, typer.Option("--before", metavar="ID", help="Only older ones than this message.")
    ] = None,
) -> Output:
    """Show a conversation: its summary, and its messages, oldest first."""
    at: dict[str, Any] = {"user": user, "place": place}
    one = await pet.conversations.get(id, **at)
    found = await pet.conversations.messages(**at, limit=limit, before=before, conversation=id)
    said = found[::-1]

    def text() -> None:
        print(plain(f"{one.place}, {one.messages} messages, {when(one.started_at)} to {when(one.last_at)}"))
        print(plain(one.summary or "(no summary yet)"))
        rows = [[line.id[:8], line.author, line.text, when(line.sent_at)] for line in said]
        print_table(("id", "author", "text", "sent"), rows)

    return Output({**asdict(one), "transcript": [*map(message_json, said)]}, text)


@group.command("delete")
@with_companion
async def delete_conversation(pet: "Companion", id: Id, user: User, yes: Yes = False) -> Output:
    """Forget all that you said in a conversation and were answered.

    The facts, tasks and profile entries that rest on it alone go too.
    """
    one = await pet.conversations.get(id, user=user)
    if must_ask(yes, "forgotten"):
        print(plain(f"{one.title}\n{one.messages} messages, {when(one.started_at)} to {when(one.last_at)}"))
        confirm("Forget all of it, with what was learned from it alone?", "forgotten")
    receipt = await pet.conversations.forget_conversation(id, user=user)
    return Output(forgotten_json(receipt), forgotten_text(receipt, f"{id}: {one.title}"))
