"""Values that a trace holds as JSON, and that a replay reads from it."""

from functools import cache
from typing import Any, Self

from pydantic import TypeAdapter


class Traced:
    """A dataclass that a trace holds without its defaults."""

    __slots__ = ()

    def to_trace(self) -> dict[str, Any]:
        """Return it as JSON values."""
        values: dict[str, Any] = _form(type(self)).dump_python(self, mode="json", exclude_defaults=True)
        return values

    @classmethod
    def from_trace(cls, data: Any) -> Self:
        """Return the value of `to_trace`. Raises pydantic.ValidationError for anything else."""
        return _form(cls).validate_python(data)


@cache
def _form(kind: type[Traced]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
