"""JSON schemas from clients: nothing is fetched for them, and nothing in them can take long."""

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

MOST_REFERENCES = 2_000
"""References that are followed for one answer. A short schema may lead to any number of them."""
_REFUSED = ("patternProperties", "$dynamicRef", "$schema")
_OF_NAMES = ("properties", "dependentSchemas", "$defs", "definitions")
"""Keywords with a mapping of names."""
_OF_DATA = ("const", "enum", "default", "examples")


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise BadInput for what is no schema, or cannot be checked."""
    try:
        Draft202012Validator.check_schema(schema)
    except (SchemaError, RecursionError) as error:
        raise BadInput(f"response_format: {getattr(error, 'message', 'it is too deep')[:200]}") from error
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
    keywords = {"pattern": _pattern, "$ref": partial(_reference, count())}
    validator = extend(Draft202012Validator, keywords)(_without_dialect(schema), registry=Registry())
    try:
        error = next(validator.iter_errors(value), None)
    except RecursionError:
        return "the schema leads back to itself without end"
    return error and str(error.message)[:300]


def _without_dialect(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema without the name of its dialect, which would choose other keywords."""
    return {name: value for name, value in schema.items() if name != "$schema"}


def _keywords(schema: object) -> Iterator[tuple[str, Any]]:
    """Yield each keyword with a text, and each one with a mapping, of the schema and those in it. What is
    named in `properties` is no keyword."""
    waiting = [(schema, False)]
    while waiting:
        here, names = waiting.pop()
        if isinstance(here, dict):
            for name, value in here.items():
                if not names and isinstance(value, str | dict):
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


def _reference(taken: Iterator[int], validator: Any, ref: str, *given: Any) -> Iterator[ValidationError]:
    if next(taken) >= MOST_REFERENCES:
        yield ValidationError(f"it needs more than {MOST_REFERENCES} references of the schema")
    else:
        yield from Draft202012Validator.VALIDATORS["$ref"](validator, ref, *given)
