"""JSON schemas from clients: nothing is fetched for them, and nothing in them can take long."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from itertools import count
from typing import Any

from jsonschema import Draft202012Validator, SchemaError, ValidationError
from jsonschema.validators import extend
from pydantic_core import SchemaValidator, core_schema
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from agent.errors import BadInput

MOST_PARTS, DEEPEST = 2_000, 50
"""Objects, lists and values of a schema, and how deep they may be in each other."""
MOST_REFERENCES = 1_000
"""References that are followed for one answer. A short schema may lead to any number of them."""
_REFUSED = ("patternProperties", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$schema")
"""What leads elsewhere, and what takes more than linear time, as the unevaluated do for each level."""
_OF_NAMES = ("properties", "dependentSchemas", "$defs", "definitions")
"""Keywords with a mapping of names."""
_OF_DATA = ("const", "enum", "default", "examples")


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise BadInput for what is no schema, or cannot be checked. A large one takes up to half a second."""
    _check_size(schema)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise BadInput(f"response_format: {error.message[:200]}") from error
    resolver = Registry().with_resource("", DRAFT202012.create_resource(schema)).resolver()
    for name, value in _keywords(_without_dialect(schema)):
        if name in _REFUSED:
            raise BadInput(f"response_format: {name} is not supported")
        if name == "$ref" and isinstance(value, str):
            try:
                resolver.lookup(value)
            except Unresolvable as error:
                raise BadInput(f"response_format: $ref {value[:100]!r} is not in the schema") from error
        elif name == "pattern" and isinstance(value, str):
            try:
                _expression(value)
            except Exception as error:
                raise BadInput(f"response_format: the pattern {value[:100]!r} is not supported") from error


def fault_in(value: object, schema: Mapping[str, Any]) -> str | None:
    """Return how the value differs from the schema; None if it does not."""
    keywords = {"pattern": _pattern, "uniqueItems": _unique, "$ref": partial(_reference, count())}
    validator = extend(Draft202012Validator, keywords)(_without_dialect(schema), registry=Registry())
    try:
        error = next(validator.iter_errors(value), None)
    except RecursionError:
        return "the schema leads back to itself without end"
    return error and str(error.message)[:300]


def _check_size(schema: Mapping[str, Any]) -> None:
    """Raise BadInput for a schema that would take too long to check."""
    level: list[Any] = [schema]
    parts = depth = 0
    while level:
        parts, depth = parts + len(level), depth + 1
        if parts > MOST_PARTS or depth > DEEPEST:
            most = f"{MOST_PARTS:,} parts or {DEEPEST} levels"
            raise BadInput(f"response_format: the schema has more than {most}; simplify it")
        inner = (part.values() if isinstance(part, dict) else part for part in level)
        level = [one for some in inner if not isinstance(some, str | int | float | None) for one in some]


def _without_dialect(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema without the name of its dialect, which would choose other keywords."""
    return {name: value for name, value in schema.items() if name != "$schema"}


def _keywords(schema: object) -> Iterator[tuple[str, Any]]:
    """Yield each keyword with a text, a mapping or a truth value, of the schema and those in it. What is
    named in `properties` is no keyword."""
    waiting = [(schema, False)]
    while waiting:
        here, names = waiting.pop()
        if isinstance(here, dict):
            for name, value in here.items():
                if not names and isinstance(value, str | dict | bool):
                    yield name, value
                if names or name not in _OF_DATA:
                    waiting.append((value, not names and name in _OF_NAMES))
        elif isinstance(here, list):
            waiting += [(one, False) for one in here]


@lru_cache(maxsize=200)
def _expression(pattern: str) -> SchemaValidator:
    """Return a search for the pattern that takes linear time, which Python's own may not. Raises what
    pydantic raises for one that is not regular."""
    return SchemaValidator(core_schema.str_schema(pattern=pattern))


def _pattern(validator: Any, pattern: str, value: Any, _: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not _expression(pattern).isinstance_python(value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _unique(validator: Any, unique: bool, value: Any, _: Any) -> Iterator[ValidationError]:
    """Compares items by their JSON: jsonschema itself compares each with each."""
    items = value if unique and isinstance(value, list) else []
    if len({json.dumps(item, sort_keys=True) for item in items}) < len(items):
        yield ValidationError("an item is there twice")


def _reference(taken: Iterator[int], validator: Any, ref: str, *given: Any) -> Iterator[ValidationError]:
    if next(taken) >= MOST_REFERENCES:
        yield ValidationError(f"it needs more than {MOST_REFERENCES} references of the schema")
    else:
        yield from Draft202012Validator.VALIDATORS["$ref"](validator, ref, *given)
