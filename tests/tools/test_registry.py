"""How a tool is called with what a model wrote."""

import json
import logging
import re
from contextlib import suppress
from itertools import count
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from memory.audience import PRIVATE
from memory.errors import IndexUnavailable
from memory.process.breaker import utc_now
from tools.context import TurnContext
from tools.failures import ToolFailed, TryAgain
from tools.registry import TOOLS, lenient, read_arguments, tool_of


async def paint(
    turn: TurnContext,
    colour: Annotated[str, Field(min_length=2, description="which one")],
    coats: Annotated[int, Field(default=1, ge=1)],
    glossy: bool = False,
) -> dict[str, Any]:
    """Paint the boat.

    In one colour.
    """
    if colour == "plaid":
        raise TryAgain("colour: plaid is no colour")
    if colour == "gold":
        raise ToolFailed("there is no gold left")
    if colour == "sea":
        raise IndexUnavailable("the index is away")
    if colour == "void":
        raise RuntimeError("a secret cause")
    return {"colour": colour, "coats": coats, "glossy": glossy, "by": turn.user}


PAINT = tool_of(paint)
NOTHING: Any = None
ANA = TurnContext("ana", PRIVATE, "", None, frozenset(), utc_now, NOTHING, NOTHING, NOTHING, NOTHING)
"""A turn whose tool asks nothing of the memory."""


def test_the_schema_comes_from_the_signature():
    assert PAINT.name == "paint"
    assert PAINT.description == "Paint the boat.\n\nIn one colour."
    assert PAINT.schema == {
        "type": "object",
        "properties": {
            "colour": {"type": "string", "description": "which one"},
            "coats": {"type": "integer"},
            "glossy": {"type": "boolean", "default": False},
        },
        "required": ["colour", "coats"],
    }


async def odd(asks: TurnContext, turn: int, _x: int, model_config: int, copy: int = 4) -> list[int]:
    """Take names that pydantic and we use ourselves."""
    return [turn, _x, model_config, copy]


async def test_an_argument_may_have_any_name():
    made, given = tool_of(odd), {"turn": "1", "_x": "2", "model_config": "3"}
    assert made.schema["required"] == [*given]
    assert (await made.call(ANA, json.dumps(given))).text == "[1, 2, 3, 4]"


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_argument_says_what_it_is(tool):
    assert tool.description.endswith((".", "`."))
    assert "turn" not in tool.schema["properties"]
    for name, part in tool.schema["properties"].items():
        assert part.get("description") or part.get("enum") or name in {"query", "limit"}, name


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ('{"colour": "red", "coats": 2, "glossy": true}', {"colour": "red", "coats": 2, "glossy": True}),
        ('{"colour": "red"}', {"colour": "red", "coats": 1, "glossy": False}),
        ('{"colour": "כחול", "coats": "3", "x": 1}', {"colour": "כחול", "coats": 3, "glossy": False}),
        ("{'colour': 'red', coats: 2,}", {"colour": "red", "coats": 2, "glossy": False}),
        ('{"colour": "red", "coats": 2', {"colour": "red", "coats": 2, "glossy": False}),
        ('{"colour": "red"}\n{"colour": "red"}', {"colour": "red", "coats": 1, "glossy": False}),
        ('{"colour": "red"}}', {"colour": "red", "coats": 1, "glossy": False}),
    ],
)
async def test_a_call_is_read_as_it_was_meant(written, made):
    result = await PAINT.call(ANA, written)

    assert json.loads(result.text) == {**made, "by": "ana"}
    assert result.ok


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("{}", "colour: field required"),
        ('{"colour": "r"}', "colour: string should have at least 2 characters (you gave 'r')"),
        ('{"colour": "red", "coats": 0}', "coats: input should be greater than or equal to 1 (you gave '0')"),
        (
            '{"colour": 7, "coats": "many"}',
            "colour: input should be a valid string (you gave '7'); coats: input should be a valid integer",
        ),
        ('{"colour": "plaid"}', "colour: plaid is no colour"),
        ('["red"]', "the arguments must be one JSON object"),
        ('{"colour": "red"}{"colour": "blue"}', "the arguments must be one JSON object"),
        ('{"coats": 2, "colour": "dark r', "the arguments end in the middle of a text"),
        ("red", "the arguments must be one JSON object"),
    ],
)
async def test_a_wrong_call_is_told_what_to_change(written, told):
    result = await PAINT.call(ANA, written)

    assert json.loads(result.text)["error"].startswith(told)
    assert json.loads(result.text)["try_again"] is True
    assert not result.ok


@pytest.mark.parametrize(
    ("colour", "told"), [("gold", "there is no gold left"), ("sea", "the index is away")]
)
async def test_a_right_call_that_did_not_work_is_not_to_be_tried_again(colour, told):
    result = await PAINT.call(ANA, f'{{"colour": "{colour}"}}')

    assert (json.loads(result.text), result.ok) == ({"error": told}, False)


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        (b"\xff", "invalid utf-8"),
        ({"deep": CYCLE}, "recursion"),
        ("\ud800", "surrogates not allowed"),
        ({"text": ["\ud800"]}, "surrogates not allowed"),
        (count(), "a count; return a list"),
        ({"lines": list(range(3)), "more": (n for n in range(3))}, "a generator; return a list"),
        ({"degrees": float("nan")}, "not JSON compliant"),
    ],
)
async def test_a_result_that_json_cannot_hold_is_the_error_of_the_tool(returned, why):
    async def odd(turn: TurnContext) -> Any:
        """Return it."""
        return returned

    result = await tool_of(odd).call(ANA, "{}")
    assert (result.ok, json.loads(result.text).keys()) == (False, {"error"})
    assert json.loads(result.text)["error"].startswith("its result cannot be written as JSON: ")
    assert why in result.text


@pytest.mark.parametrize("returned", ["x" * 50_000, ["x" * 50_000]])
async def test_of_a_long_result_the_beginning_is_told(returned):
    async def long(turn: TurnContext) -> Any:
        """Return it."""
        return returned

    result = await tool_of(long).call(ANA, "{}")
    assert result.ok
    assert re.fullmatch(r"(\[\")?x+ … \[30,00\d characters left out\]", result.text)
    assert 20_000 < len(result.text) < 20_050


async def test_an_error_with_half_a_character_is_told_too():
    async def broken(turn: TurnContext) -> Any:
        """Fail."""
        raise ToolFailed("no \ud800")

    assert json.loads((await tool_of(broken).call(ANA, "{}")).text) == {"error": "no �"}


async def test_a_tool_that_breaks_says_so_and_its_cause_is_in_the_log(caplog):
    result = await PAINT.call(ANA, '{"colour": "void"}')

    assert (json.loads(result.text), result.ok) == ({"error": "paint broke; go on without it"}, False)
    [record] = [record for record in caplog.records if record.name == "hachi.tools"]
    assert record.levelno == logging.ERROR
    assert "RuntimeError: a secret cause" in caplog.text


@given(st.text())
def test_whatever_is_written_is_an_object_or_to_be_tried_again(written):
    with suppress(TryAgain):
        assert isinstance(read_arguments(written), dict)


@given(st.dictionaries(st.text(), st.integers(-(2**53), 2**53) | st.text() | st.none() | st.lists(st.text())))
def test_json_is_read_as_it_is(value):
    assert read_arguments(json.dumps(value, ensure_ascii=False)) == value


@pytest.mark.parametrize("written", ['{"query":' * 5_000 + "1" + "}" * 5_000, '{"query":' * 5_000])
def test_arguments_that_are_nested_too_deep_are_a_wrong_call(written):
    with pytest.raises(TryAgain, match="nested too deep"):
        read_arguments(written)


def test_null_is_the_default_and_a_text_with_commas_a_list():
    class Arguments(BaseModel):
        names: list[str] = []
        size: int = 3
        town: str | None = "Lyon"
        needed: str

    read = lenient(Arguments)
    written = {"names": "a,b", "size": None, "town": None, "needed": "x"}
    meant = {"names": ["a", "b"], "size": 3, "town": None, "needed": "x"}
    assert read.model_validate(written).model_dump() == meant
    with pytest.raises(ValidationError):
        read.model_validate({"needed": None})
