"""What people call accounts, places and calls of tools, whose ids are numbers and names of functions."""

import json
from collections.abc import Mapping
from typing import Any

from memory.audience import Place
from memory.text import one_line
from tools.proposed_call import ProposedCall

PLATFORMS = {"discord": "Discord", "slack": "Slack"}
"""Chat platforms, whose places have ids for names."""


def platform_of(user: str) -> str:
    """Return the platform that an account's id names: Discord for ``discord:1``; "" for ids without one."""
    return user.partition(":")[0].capitalize() if ":" in user else ""


def account_labels(linked: Mapping[str, str]) -> dict[str, str]:
    """Return the owner keys of linked accounts, given with their ids, with what a model reads of each."""
    return {key: platform_of(account) or "another account" for key, account in linked.items()}


def place_label(place: Place) -> str:
    """Return what to call a place in a sentence: never the ids of a chat platform."""
    platform = PLATFORMS.get(place.path[0]) if place.path else None
    return place.name or (f"a channel on {platform}" if platform else str(place))


def call_title(call: ProposedCall) -> str:
    return call.title or call.tool.replace("_", " ").capitalize()


def call_in_words(call: ProposedCall) -> str:
    """Say what a call would do: what its tool is for, then a line for each argument."""
    what = f"{call_title(call)}, with {call.server}{call.purpose and f': {call.purpose}'}"
    given: dict[str, Any] = json.loads(call.arguments)
    return "\n".join([what, *(f"{_words(name)}: {_shown(value)}" for name, value in given.items())])


def _words(name: str) -> str:
    return one_line(name.replace("_", " "))


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"({'; '.join(f'{_words(name)}: {_shown(inner)}' for name, inner in value.items())})"
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    return "\n    ".join(str(value).splitlines())  # so that no line of a text passes for an argument
