"""The benchmark of waits reaches every field."""

import json
from collections.abc import Callable
from types import ModuleType

SCHEMAS = {
    "Inner": {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}},
    "Body": {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "inner": {"anyOf": [{"$ref": "#/components/schemas/Inner"}, {"type": "null"}]},
            "more": {"type": "object"},
        },
    },
}


def test_every_text_list_and_object_of_a_body_is_filled(script: Callable[[str], ModuleType]) -> None:
    waits = script("waits")
    body = {"application/json": {"schema": {"$ref": "#/components/schemas/Body"}}}
    document = {
        "paths": {"/a": {"post": {"requestBody": {"content": body}}}},
        "components": {"schemas": SCHEMAS},
    }
    made = {name: body for name, _, _, body, _ in waits.requests(document) if name.startswith("POST")}
    assert made.keys() == {"POST /a .name", "POST /a .inner.tags[]", "POST /a .more{}"}
    for body_made in made.values():
        assert waits.MARK in body_made
        assert json.loads(body_made)["name"]
