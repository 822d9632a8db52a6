"""JSON schemas that clients send."""

from typing import Any

import pytest

from agent.errors import BadInput
from agent.turn.client.json_schema import check_schema, fault_in

LIST = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "next": {"$ref": "#/$defs/node"},
                "name": {"type": "string", "pattern": "^[a-z]+$"},
            },
        },
        "pattern": {"const": {"$ref": "no reference"}},
    },
    "properties": {"first": {"$ref": "#/$defs/node"}, "$ref": {"type": "string"}, "$id": {"type": "string"}},
}


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ({"$ref": "http://127.0.0.1:9/schema"}, "is not in the schema"),
        ({"$ref": "file:///etc/passwd"}, "is not in the schema"),
        ({"$ref": "#/$defs/nothing"}, "is not in the schema"),
        ({"$id": "http://127.0.0.1:9/", "$ref": "schema"}, "is not in the schema"),
        ({"patternProperties": {"^(a+)+$": {}}}, "not supported"),
        ({"pattern": "(?=a)b"}, "the pattern"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "not supported"),
        ({"type": "banana"}, "banana"),
    ],
)
def test_a_schema_that_leads_elsewhere_or_cannot_be_checked_is_refused(part: Any, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        check_schema({"type": "object", "properties": {"a": part}})


def test_a_value_is_checked() -> None:
    check_schema(LIST)
    assert fault_in({"first": {"next": {"name": "b"}}, "$ref": "x"}, LIST) is None
    assert fault_in({"first": {"next": {"name": "B"}}}, LIST) == "'B' does not match '^[a-z]+$'"


def test_no_schema_takes_long() -> None:
    hard = {"properties": {"a": {"pattern": "^(a+)+$"}}}
    check_schema(hard)
    assert "does not match" in str(fault_in({"a": "a" * 100 + "!"}, hard))
    twice = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at - 1}"}] * 2} for at in range(1, 60)}
    wide = {"$defs": {"d0": {}, **twice}, "$ref": "#/$defs/d59"}
    check_schema(wide)
    assert "more than" in str(fault_in({}, wide))
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    assert "more than" in str(fault_in({}, {**wide, **dialect, "anyOf": [{"$ref": "#"}]}))
    assert "without end" in str(fault_in({}, {"$ref": "#"}))
