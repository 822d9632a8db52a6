"""A turn with all that it needs to be taken again anywhere: its trace, what was remembered, the settings."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Table, insert, select

from agent.companion import Companion
from agent.replay.scratch import LOT
from agent.settings import Settings
from agent.tracing.redact import redacted
from agent.tracing.setup import redaction_of
from agent.tracing.trace import Summary, Trace, Usage, span_from, span_json
from agent.turn.persona import read_persona
from memory.sql import tables as t
from memory.sql.tables import Utc

VERSION = 1
TABLES: tuple[Table, ...] = (
    *(t.users, t.speakers, t.messages, t.active_conversations, t.memories, t.memory_owners),
    *(t.memory_aliases, t.memory_updates, t.tasks, t.knowledge_documents, t.knowledge_chunks),
)
"""In an order in which they can be filled."""
MOST_ROWS = 500
"""With more than these, only what the turn saw or considered is taken along."""
SETTINGS = (
    *("structured", "max_turns", "history_messages", "history_budget", "context_budget", "summary_budget"),
    *("knowledge_budget", "knowledge_first", "importance_floor", "half_life_days", "mode"),
)
"""Those that decide what a turn comes to, beside the persona."""
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

Rows = Mapping[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Fixture:
    trace: Trace
    rows: Rows
    """By table."""
    settings: Mapping[str, Any]
    persona: str

    def to_json(self) -> str:
        summary = asdict(self.trace.summary)
        whole = {
            "version": VERSION,
            "summary": summary | {"started_at": self.trace.summary.started_at.isoformat()},
            "made_by": self.trace.made_by,
            "root": span_json(self.trace.root),
            "settings": self.settings,
            "persona": self.persona,
            "rows": self.rows,
        }
        return json.dumps(whole, ensure_ascii=True, indent=1, default=_plain) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Fixture":
        """Raises ValueError where it is none."""
        try:
            whole = json.loads(text)
            summary = whole["summary"]
            summary |= {
                "started_at": datetime.fromisoformat(summary["started_at"]),
                "usage": Usage(**summary["usage"]),
                "tools": tuple(summary["tools"]),
            }
            trace = Trace(Summary(**summary), span_from(whole["root"]), whole["made_by"], redacted=True)
            return cls(trace, whole["rows"], whole["settings"], whole["persona"])
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is no fixture of a trace, or one of another Hachi ({error!r})") from error


async def fixture_of(pet: Companion, scratch: Companion, trace: Trace) -> Fixture:
    """From a copy of what was remembered; secrets are taken out as they are of traces."""
    rows = {table.name: await _rows(scratch, table) for table in TABLES}
    if sum(map(len, rows.values())) > MOST_ROWS:
        rows = _concerned(rows, trace)
    patterns = redaction_of(pet.settings)
    whole = json.dumps(rows, default=_plain)
    kept = redacted(json.loads(whole), patterns.suspects(whole))
    settings = {name: _plain_setting(getattr(pet.settings, name)) for name in SETTINGS}
    summary = replace(trace.summary, process="")
    return Fixture(
        replace(trace, summary=summary, redacted=True), kept, settings, read_persona(pet.settings.persona)
    )


async def fill(scratch: Companion, rows: Rows) -> None:
    """Put them into an empty companion."""
    async with scratch.components.database.write() as connection:
        for table in TABLES:
            given = [_typed(table, row) for row in rows.get(table.name, ())]
            for at in range(0, len(given), LOT):
                await connection.execute(insert(table), given[at : at + LOT])
    await scratch.components.sync.catch_up()
    if not await scratch.components.documents.empty():
        await scratch.components.documents.catch_up()


def settings_of(fixture: Fixture) -> Settings:
    """With the bundled embedder and no server, so that it runs anywhere."""
    return Settings.load(
        **fixture.settings, embedder="bundled", openai_api_key=None, openai_base_url=None, reranker="fused"
    )


async def _rows(scratch: Companion, table: Table) -> list[dict[str, Any]]:
    query = select(table)
    async with scratch.components.database.read() as connection:
        found = await connection.execute(query.order_by(*table.primary_key))
        return [{**row._mapping, **_not_indexed(table)} for row in found]


def _concerned(rows: Rows, trace: Trace) -> dict[str, list[dict[str, Any]]]:
    """The rows whose ids the trace names."""
    named = set(_ID.findall(json.dumps(span_json(trace.root), default=_plain)))
    kept = dict(rows)
    for table, column in (
        *(("messages", "id"), ("memories", "id"), ("tasks", "id"), ("active_conversations", "id")),
        *(("knowledge_chunks", "id"), ("memory_owners", "memory_id"), ("memory_aliases", "memory_id")),
        ("memory_updates", "old_id"),
    ):
        kept[table] = [row for row in rows[table] if row[column] in named]
    documents = {row["document_id"] for row in kept["knowledge_chunks"]}
    kept["knowledge_documents"] = [row for row in rows["knowledge_documents"] if row["id"] in documents]
    return kept


def _not_indexed(table: Table) -> dict[str, None]:
    return {"indexed_under": None} if "indexed_under" in table.c else {}


def _typed(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: datetime.fromisoformat(value)
        if value is not None and isinstance(table.c[name].type, Utc)
        else value
        for name, value in row.items()
    }


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _plain_setting(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float) else str(value)
