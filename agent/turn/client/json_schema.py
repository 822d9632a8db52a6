"""Check JSON schemas from clients, and values against them, without fetching anything and in bounded time."""

import json
import re
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

MOST_CHARACTERS = 40_000
"""The most characters of a schema as JSON."""
MOST_REFERENCES = 1_000
"""References that are followed for one answer. Even a short schema may need any number of them."""
_REFUSED = re.compile(r'"(patternProperties|unevaluatedProperties|unevaluatedItems|\$dynamicRef|\$schema)":')
"""Keywords that refer to other schemas, or take more than linear time."""
_TEXTS = re.compile(r'"(\$ref|pattern)": ("(?:[^"\\]|\\.)*")')


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise BadInput for an invalid or unsupported schema. A large one takes up to half a second."""
    schema = _without_dialect(schema)
    try:
        text = json.dumps(schema)
        if len(text) > MOST_CHARACTERS:
            raise RecursionError
        Draft202012Validator.check_schema(schema)
    except RecursionError:
        most = f"more than {MOST_CHARACTERS:,} characters, or too many levels"
        raise BadInput(f"response_format: the schema has {most}; simplify it") from None
    except SchemaError as error:
        raise BadInput(f"response_format: {error.message[:200]}") from error
    if refused := _REFUSED.search(text):
        raise BadInput(f"response_format: {refused[1]} is not supported")
    resolver = Registry().with_resource("", DRAFT202012.create_resource(schema)).resolver()
    for name, written in _TEXTS.findall(text):
        value = json.loads(written)
        try:
            _expression(value) if name == "pattern" else resolver.lookup(value)
        except Unresolvable as error:
            raise BadInput(f"response_format: $ref {value[:100]!r} is not in the schema") from error
        except Exception as error:
            raise BadInput(f"response_format: the pattern {value[:100]!r} is not supported") from error


def fault_in(value: object, schema: Mapping[str, Any]) -> str | None:
    """Return how the value violates the schema, beginning with the field; None if it fits."""
    keywords = {"pattern": _pattern, "uniqueItems": _unique, "$ref": partial(_reference, count())}
    validator = extend(Draft202012Validator, keywords)(_without_dialect(schema), registry=Registry())
    try:
        error = next(validator.iter_errors(value), None)
    except RecursionError:
        return "the schema leads back to itself without end"
    if error is None:
        return None
    where = error.json_path.removeprefix("$").removeprefix(".")
    return f"{where}: {error.message}"[:300] if where else str(error.message)[:300]


def _without_dialect(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema without the name of its dialect, which would change the keywords."""
    return {name: value for name, value in schema.items() if name != "$schema"}


@lru_cache(maxsize=200)
def _expression(pattern: str) -> SchemaValidator:
    """Return a validator that searches for the pattern in linear time; Python's `re` may take longer. Raises
    pydantic's error for a pattern that is not regular."""
    return SchemaValidator(core_schema.str_schema(pattern=pattern))


def _pattern(validator: Any, pattern: str, value: Any, _: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not _expression(pattern).isinstance_python(value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _unique(validator: Any, unique: bool, value: Any, _: Any) -> Iterator[ValidationError]:
    """Compare items by their JSON in linear time; jsonschema itself compares each with each."""
    items = value if unique and isinstance(value, list) else []
    if len({json.dumps(item, sort_keys=True) for item in items}) < len(items):
        yield ValidationError("an item is there twice")


def _reference(
    followed: Iterator[int], validator: Any, ref: str, value: Any, part: Any
) -> Iterator[ValidationError]:
    if next(followed) >= MOST_REFERENCES:
        yield ValidationError(f"it needs more than {MOST_REFERENCES} references of the schema")
    else:
        yield from Draft202012Validator.VALIDATORS["$ref"](validator, ref, value, part)
