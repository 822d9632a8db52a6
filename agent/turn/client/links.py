"""Remove the secret links to a person's pages from what a client sends. A client that got an answer with a
link sends it back with each later request; it would be stored, traced and shown to the model."""

from dataclasses import replace
from typing import Any

from agent.types import TurnRequest
from agent.types.client import CallItem, Item, MessageItem, ResultItem
from memory.text import LINK, without_links


def without_their_links(request: TurnRequest) -> TurnRequest:
    """Return the request without the tokens of links anywhere in it."""
    client = request.client
    if client:
        client = replace(
            client,
            history=client.history and tuple(map(_item, client.history)),
            after=tuple(map(_item, client.after)),
            shown=without_links(client.shown),
            replies_to=without_links(client.replies_to),
        )
    text, wishes = without_links(request.text), without_links(request.instructions)
    return replace(request, text=text, instructions=wishes, client=client)


def _item(item: Item) -> Item:
    name = {MessageItem: "text", CallItem: "arguments", ResultItem: "output"}[type(item)]
    text: dict[str, Any] = {name: without_links(getattr(item, name))}
    return replace(item, **text) if LINK in getattr(item, name) else item
