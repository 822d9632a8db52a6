"""JSON schemas that clients send."""

from functools import reduce

import pytest
from jsonschema import Draft202012Validator

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
        "pattern": {"const": {"$ref": 1}},
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
        ({"allOf": [{}], "unevaluatedProperties": False}, "unevaluatedProperties is not supported"),
        ({"unevaluatedItems": {"type": "string"}}, "unevaluatedItems is not supported"),
        ({"enum": list(range(9_000))}, "more than 40,000 characters"),
        (reduce(lambda inner, _: {"not": inner}, range(900), {}), "too many levels"),
        (reduce(lambda inner, _: {"not": inner}, range(60_000), {}), "too many levels"),
    ],
)
def test_a_schema_that_leads_elsewhere_or_cannot_be_checked_is_refused(part, why):
    with pytest.raises(BadInput, match=why):
        check_schema({"type": "object", "properties": {"a": part}})


def test_a_value_is_checked():
    check_schema(LIST)
    assert fault_in({"first": {"next": {"name": "b"}}, "$ref": "x"}, LIST) is None
    assert (
        fault_in({"first": {"next": {"name": "B"}}}, LIST) == "first.next.name: 'B' does not match '^[a-z]+$'"
    )


def test_a_large_schema_is_refused_before_it_is_read(monkeypatch):
    monkeypatch.setattr(Draft202012Validator, "check_schema", pytest.fail)
    with pytest.raises(BadInput, match="characters"):
        check_schema({"properties": {f"a{n}": {"type": "string"} for n in range(35_000)}})


def test_items_that_must_differ_are_not_compared_each_with_each():
    class Item(dict[str, int]):
        __eq__ = pytest.fail

    schema = {"properties": {"a": {"uniqueItems": True}}}
    check_schema(schema)
    assert fault_in({"a": [Item(n=n) for n in range(100)]}, schema) is None
    assert fault_in({"a": [{"n": 1, "m": 2}, {"m": 2, "n": 1}]}, schema) == "a: an item is there twice"


def test_no_schema_takes_long():
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
