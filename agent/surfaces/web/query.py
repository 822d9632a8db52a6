"""The filters of the list, as stored in the page's address."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from agent.errors import BadInput
from agent.tracing.filters import read_place, read_seconds, read_since
from agent.tracing.store import TraceFilter
from agent.tracing.trace import TURN

FIELDS = ("text", "user", "place", "tool", "failed", "slower", "since", "kind", "before")
MAX_FIELD = 300
"""Characters of a field."""


@dataclass(frozen=True, slots=True)
class Query:
    fields: Mapping[str, str]
    """The fields as typed, without empty ones."""
    filter: TraceFilter

    @property
    def before(self) -> str | None:
        """The id of the trace below which the page begins."""
        return self.fields.get("before")

    @property
    def filtered(self) -> bool:
        return any(name != "before" for name in self.fields)

    def address(self, path: str = "/", **changes: str | None) -> str:
        """Return the address with changed fields. It begins at the newest trace again."""
        fields = {name: value for name, value in self.fields.items() if name != "before"}
        return address(path, **(fields | changes))


def address(path: str, **fields: str | None) -> str:
    given = {name: value for name, value in fields.items() if value}
    return f"{path}?{urlencode(given, errors='replace')}" if given else path


def read_query(parameters: Mapping[str, str], now: datetime) -> Query:
    """Parse the parameters. Raises BadInput."""
    fields = {name: value for name in FIELDS if (value := parameters.get(name, "").strip())}
    for name, value in fields.items():
        if len(value) > MAX_FIELD:
            raise BadInput(f"{name} has more than {MAX_FIELD} characters")
    if fields.get("kind", "all") != "all":
        raise BadInput("kind is `all`, or nothing for turns alone")
    trace_filter = TraceFilter(
        user=fields.get("user"),
        place=read_place(fields["place"]) if "place" in fields else None,
        tool=fields.get("tool"),
        failed="failed" in fields,
        text=fields.get("text"),
        since=read_since(fields["since"], now) if "since" in fields else None,
        slower=read_seconds(fields["slower"]) if "slower" in fields else None,
        kinds=frozenset() if "kind" in fields else frozenset({TURN}),
    )
    return Query(fields, trace_filter)
