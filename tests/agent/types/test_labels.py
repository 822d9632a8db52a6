"""A person reads in words what a call would do, with all of its arguments."""

import json
from typing import Any

import pytest

from agent.types.labels import call_in_words
from memory.audience import PRIVATE
from tools.proposed_call import ProposedCall


def call(arguments: dict[str, Any], **other: str) -> ProposedCall:
    return ProposedCall("sky", "move", "sky_move", json.dumps(arguments), "ana", PRIVATE, "1", **other)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({}, ""),
        (
            {"to_town": "Lyon", "fast": True, "at": None, "km": 4.5},
            "to town: Lyon\nfast: yes\nat: –\nkm: 4.5",
        ),
        (
            {"towns": ["Lyon", "Nice"], "by": {"who": "Ana", "ok": False}},
            "towns: Lyon, Nice\nby: (who: Ana; ok: no)",
        ),
        ({"text": "one\ntwo: 3\rfour: 5\u2028six: 7"}, "text: one\n    two: 3\n    four: 5\n    six: 7"),
        ({"a\nb": "é"}, "a b: é"),
    ],
)
def test_arguments_are_lines_of_words(arguments: dict[str, Any], shown: str) -> None:
    told = call_in_words(call(arguments, title="Move clouds", purpose="Change the weather"))
    assert told == "\n".join(filter(None, ("Move clouds, with sky: Change the weather", shown)))


def test_a_call_of_before_is_named_by_its_tool() -> None:
    assert call_in_words(call({"a": 1})) == "Move, with sky\na: 1"
