"""Restore the calls of our tools in a turn that ended in calls of the client's tools.

The client does not see our calls. They are stored with the unanswered question. When the client sends the
results of its calls, ours are put before them again, so that the model sees what it has found and done. With
each call the data that the provider wants back is stored: reasoning, signatures, ids.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from agent.types import ReceivedMessage
from agent.types.client import ITEMS, CallItem, Item, ResultItem
from memory.sql.engine import Database
from memory.sql.messages.client_calls import stored_calls

MOST_CHARACTERS = 60_000
"""Characters of our newest results that are sent again; a client may call tools many times."""


async def with_stored_calls(database: Database, received: ReceivedMessage, model: str) -> ReceivedMessage:
    """If the client sends results of its tools, add the calls of our tools from the turns that asked for
    those results, as the `model` sees them."""
    client = received.request.client
    if client is None or not client.after or (kept := await stored_calls(database, str(received.id))) is None:
        return received
    after = for_model(with_ours(client.after, ITEMS.validate_python(kept.items)), model)
    request = replace(received.request, client=replace(client, after=after))
    return replace(received, request=request, sources=kept.sources)


def states_of(output: Sequence[Any], model: str) -> dict[str, str]:
    """Return for each call in a model's answer, by its id, the provider data to send back with it."""
    states, before = dict[str, str](), list[Any]()
    for item in output:
        if item.type not in ("reasoning", "function_call"):
            continue
        raw = item.model_dump(exclude_none=True, warnings=False)
        if item.type == "reasoning":
            before.append(raw)
        else:
            call = {name: raw[name] for name in ("id", "provider_data") if name in raw}
            if before or "provider_data" in call:
                states[item.call_id] = json.dumps({"model": model, "before": before, "call": call})
            before = []
    return states


def with_state(shown: dict[str, Any], call: CallItem) -> list[dict[str, Any]]:
    """Return a call as the model sees it, with the data that its provider wants back."""
    state = json.loads(call.wanted_back) if call.wanted_back else {"before": [], "call": {}}
    return [*state["before"], shown | state["call"]]


def for_model(items: Iterable[Item], model: str) -> tuple[Item, ...]:
    """Return the items without the provider data of other models."""
    return tuple(
        replace(item, wanted_back="")
        if isinstance(item, CallItem) and item.wanted_back and json.loads(item.wanted_back)["model"] != model
        else item
        for item in items
    )


def ids_of_ours(items: Iterable[Item]) -> frozenset[str]:
    """Return the ids of the calls of our tools."""
    return frozenset(item.call_id for item in items if isinstance(item, CallItem) and item.ours)


def without_ours(items: Sequence[Item]) -> list[Item]:
    """Return the items without the calls of our tools and their results."""
    ours = ids_of_ours(items)
    return [item for item in items if getattr(item, "call_id", None) not in ours]


def with_ours(after: Sequence[Item], stored: Sequence[Item]) -> tuple[Item, ...]:
    """Return what the client sends after the question, with the calls of our tools in `stored`: each before
    the client's call that followed it, or before the first one if the client gave its calls other ids."""
    ours, waiting, merged = _newest(stored), list(stored), list[Item]()
    for item in after:
        if isinstance(item, CallItem):
            ids = [one.call_id if isinstance(one, CallItem) else None for one in waiting]
            upto = ids.index(item.call_id) + 1 if item.call_id in ids else 0
            if upto and isinstance(made := waiting[upto - 1], CallItem):
                item = replace(item, wanted_back=made.wanted_back)
            merged += [one for one in waiting[:upto] if getattr(one, "call_id", None) in ours]
            waiting = waiting[upto:]
        merged.append(item)
    left = [one for one in waiting if getattr(one, "call_id", None) in ours]
    first = next((at for at, item in enumerate(merged) if isinstance(item, CallItem)), len(merged))
    return (*merged[:first], *left, *merged[first:])


def _newest(stored: Sequence[Item]) -> frozenset[str]:
    """Return the ids of the newest calls of our tools whose results come to `MOST_CHARACTERS`."""
    ours, left, newest = ids_of_ours(stored), MOST_CHARACTERS, set[str]()
    for item in reversed(stored):
        if isinstance(item, ResultItem) and item.call_id in ours:
            left -= len(item.output)
            if left < 0:
                break
            newest.add(item.call_id)
    return frozenset(newest)
