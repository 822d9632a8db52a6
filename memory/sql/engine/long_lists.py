"""Pass a long list of values to a statement as one parameter, however it is compiled.

SQLAlchemy gives each value of `column.in_(values)` a parameter of its own. PostgreSQL takes 32,767 parameters
in a statement, SQLite 32,766 or more; a person may have more messages.
"""

import json
from typing import Any

from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.compiler import SQLCompiler

MOST = 16
"""Longer lists are packed, because each length would make its own statement. Shorter ones are not, so that
the planner knows their length."""


class LongLists(SQLCompiler):
    """A mix-in for a dialect's compiler."""

    def _literal_execute_expanding_parameter(
        self, name: str, parameter: Any, values: Any, *, taken_names: Any
    ) -> tuple[list[tuple[str, Any]], str]:
        if len(values) <= MOST or not isinstance(values[0], str | int) or parameter.literal_execute:
            return super()._literal_execute_expanding_parameter(  # type: ignore[no-any-return, no-untyped-call]
                name, parameter, values, taken_names=taken_names
            )
        key = f"{name}_list"
        template = self.compilation_bindtemplate if self._numeric_binds else self.bindtemplate
        given = template % {"name": key}
        if self.dialect.name == "sqlite":
            return [(key, json.dumps(list(values)))], f"SELECT value FROM json_each({given})"
        kind = self.dialect.type_compiler_instance.process(ARRAY(parameter.type))
        return [(key, list(values))], f"SELECT unnest({given}::{kind})"


def pack_long_lists(dialect: Any) -> None:
    """Make an engine's dialect pass long lists as one parameter."""
    compiler = dialect.statement_compiler
    dialect.statement_compiler = type(f"Packing{compiler.__name__}", (LongLists, compiler), {})
