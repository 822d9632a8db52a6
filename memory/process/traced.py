"""Values that a trace stores as JSON and a replay reads back."""

from functools import cache
from typing import Any, Self

from pydantic import TypeAdapter


class Traced:
    """A dataclass that a trace stores without its defaults."""

    __slots__ = ()

    def to_trace(self) -> dict[str, Any]:
        """Return it as JSON values."""
        kind: Any = type(self)
        values: dict[str, Any] = _form(kind).dump_python(self, mode="json", exclude_defaults=True)
        return values

    @classmethod
    def from_trace(cls, data: Any) -> Self:
        """Return the value of `to_trace`. Raises pydantic.ValidationError for anything else."""
        kind: Any = cls
        value: Self = _form(kind).validate_python(data)
        return value


@cache
def _form(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
