"""`hachi conversations`: read conversations, and forget them as a whole."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from agent.surfaces.cli.options import Before, Most, PlaceName, User, Yes
from agent.surfaces.cli.output import (
    Columns,
    Output,
    confirm,
    forgotten,
    plain,
    print_records,
    table_of,
    when,
)
from agent.surfaces.cli.people import MESSAGES
from agent.surfaces.cli.session import Companion, with_companion
from agent.types.records_json import message_json
from memory.records import Conversation

group = typer.Typer(help="See and forget conversations.", rich_markup_mode=None)
Id = Annotated[str, typer.Argument(metavar="ID", help="The whole id, as `list` prints it.")]
BEGINNING = 60
"""Maximum characters of a first message in a list."""
COLUMNS: Columns = {
    "id": lambda one: one.id,
    "place": "place",
    "begins": lambda one: one.title if len(one.title) <= BEGINNING else f"{one.title[:BEGINNING]}…",
    "messages": "messages",
    "last message": "last_at",
}


@group.command("list")
@with_companion
async def list_conversations(pet: Companion, user: User, place: PlaceName = "dm", limit: Most = 20) -> Output:
    """List the conversations of all clients; the one with the newest message comes first."""
    page = await pet.conversations.list(user=user, place=place, limit=limit)
    return table_of(page, COLUMNS, empty=f"no conversations of {user!r} here")


@group.command()
@with_companion
async def show(
    pet: Companion, id: Id, user: User, place: PlaceName = "dm", limit: Most = 20, before: Before = None
) -> Output:
    """Show a conversation: its summary, and its messages, oldest first."""
    at: dict[str, Any] = {"user": user, "place": place}
    one = await pet.conversations.get(id, **at)
    page = await pet.conversations.messages(**at, limit=limit, before=before, conversation=id)
    messages = page[::-1]

    def text() -> None:
        print(plain(f"{one.place}, {_extent(one)}\n{one.summary or '(no summary yet)'}"))
        print_records(MESSAGES, messages)

    return Output({**asdict(one), "transcript": [*map(message_json, messages)]}, text)


@group.command("delete")
@with_companion
async def delete_conversation(pet: Companion, id: Id, user: User, yes: Yes = False) -> Output:
    """Forget all of your messages in a conversation, and the replies.

    Also forgets the facts, tasks and profile entries that have no other evidence.
    """
    one = await pet.conversations.get(id, user=user)
    question = "Forget all of it, with what was learned from it alone?"
    await confirm(yes, "forgotten", question, f"{one.title}\n{_extent(one)}")
    receipt = await pet.conversations.forget_conversation(id, user=user)
    return forgotten(receipt, f"{id}: {one.title}")


def _extent(one: Conversation) -> str:
    return f"{one.messages} messages, {when(one.started_at)} to {when(one.last_at)}"
