"""The modal that asks for the new text of a memory."""

from collections.abc import Mapping
from typing import Any

from agent.surfaces.bots.slack.blocks import Block, plain
from memory.facts.writer import MAX_CONTENT

MODAL = "hachi.edited"
"""Its callback id."""
_BLOCK, _INPUT = "memory", "words"


def edit_modal(text: str, metadata: str) -> Block:
    """`metadata` comes back with the submitted text."""
    entry = {
        "type": "plain_text_input",
        "action_id": _INPUT,
        "multiline": True,
        "initial_value": text,
        "max_length": MAX_CONTENT,
    }
    label = plain("What I am to remember")
    return {
        "type": "modal",
        "callback_id": MODAL,
        "private_metadata": metadata,
        "title": plain("Say it differently"),
        "submit": plain("Remember"),
        "close": plain("Cancel"),
        "blocks": [{"type": "input", "block_id": _BLOCK, "label": label, "element": entry}],
    }


def submitted_text(view: Mapping[str, Any]) -> str:
    return str(view["state"]["values"][_BLOCK][_INPUT].get("value") or "")


def empty_error() -> dict[str, str]:
    return {_BLOCK: "Say what I am to remember."}
