"""A turn with everything needed to replay it anywhere: its trace, the stored rows and the settings."""

import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Table, select

from agent.companion import Companion
from agent.replay.replay import sandbox_settings
from agent.replay.sandbox import build_index, copy_memories, insert_rows
from agent.settings import Settings
from agent.tracing.redact import redacted
from agent.tracing.setup import redaction_of
from agent.tracing.trace import Summary, Trace, span_from, span_json
from agent.turn.persona import read_persona
from memory.sql import tables as t
from memory.sql.tables import Utc

VERSION = 1
TABLES: tuple[Table, ...] = (
    *(t.users, t.speakers, t.messages, t.active_conversations, t.memories, t.memory_owners),
    *(t.memory_aliases, t.memory_updates, t.tasks, t.knowledge_documents, t.knowledge_chunks),
)
"""Ordered so that they can be filled one after the other."""
MAX_ROWS = 500
"""Above this many rows, the fixture includes only those that the trace names."""
SETTINGS = (
    *("structured", "max_turns", "history_messages", "history_budget", "context_budget", "summary_budget"),
    *("knowledge_budget", "knowledge_first", "importance_floor", "half_life_days", "mode"),
    *("memory", "prompt_facts"),
)
"""The settings that change a turn, besides the persona."""
NAMED_BY = {
    **dict.fromkeys(("messages", "memories", "tasks", "active_conversations", "knowledge_chunks"), "id"),
    "memory_owners": "memory_id",
    "memory_aliases": "memory_id",
    "memory_updates": "old_id",
}
"""For each table, the column whose value a trace may name."""
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Fixture:
    trace: Trace
    rows: Rows
    """Rows by table."""
    settings: Mapping[str, Any]
    persona: str

    def to_json(self) -> str:
        trace = {"summary": asdict(self.trace.summary), "made_by": self.trace.made_by}
        trace["root"] = span_json(self.trace.root)
        rest = {"settings": self.settings, "persona": self.persona, "rows": self.rows}
        return json.dumps({"version": VERSION, **trace, **rest}, indent=1, default=_plain) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Fixture":
        """Parse a fixture. Raises ValueError if the text is not one."""
        try:
            whole = json.loads(text)
            summary = TypeAdapter(Summary).validate_python(whole["summary"])
            trace = Trace(summary, span_from(whole["root"]), whole["made_by"], redacted=True)
            return cls(trace, whole["rows"], whole["settings"], whole["persona"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"this is no fixture of a trace, or one of another Hachi ({error!r})") from error

    def open_settings(self) -> Settings:
        """Return settings that work anywhere: the bundled embedder and no server."""
        no_server = dict.fromkeys(("openai_api_key", "openai_base_url", "provider"))
        return Settings.load(**{**self.settings, **no_server, "embedder": "bundled", "reranker": "fused"})

    async def fill(self, sandbox: Companion) -> None:
        """Insert the rows into an empty companion."""
        async with sandbox.components.database.write() as connection:
            for table in TABLES:
                rows = [_typed(table, row) for row in self.rows.get(table.name, ())]
                await insert_rows(connection, table, rows)
        await build_index(sandbox)


async def fixture_of(pet: Companion, trace: Trace) -> Fixture:
    """Build a fixture from a copy of the stored memory, redacted as traces are."""
    with tempfile.TemporaryDirectory(prefix="hachi-test-", ignore_cleanup_errors=True) as folder:
        settings = sandbox_settings(pet.settings, folder)
        async with Companion.open(settings, clock=pet.clock, upkeep=False) as sandbox:
            await copy_memories(pet, trace, sandbox, index=False)
            rows = {table.name: await _rows(sandbox, table) for table in TABLES}
    if sum(map(len, rows.values())) > MAX_ROWS:
        rows = _named_rows(rows, trace)
    text = json.dumps(rows, default=_plain)
    summary = replace(trace.summary, process="")
    return Fixture(
        replace(trace, summary=summary, redacted=True),
        redacted(json.loads(text), redaction_of(pet.settings).suspects(text)),
        pet.settings.model_dump(mode="json", include=set(SETTINGS)),
        read_persona(pet.settings.persona),
    )


async def _rows(sandbox: Companion, table: Table) -> list[dict[str, Any]]:
    async with sandbox.components.database.read() as connection:
        found = await connection.execute(select(table).order_by(*table.primary_key))
        return [dict(row._mapping) for row in found]


def _named_rows(rows: Rows, trace: Trace) -> Rows:
    """Return the rows whose ids the trace names."""
    named = set(_ID.findall(json.dumps(span_json(trace.root), default=_plain)))
    kept = dict(rows)
    for table, column in NAMED_BY.items():
        kept[table] = [row for row in rows[table] if row[column] in named]
    documents = {row["document_id"] for row in kept["knowledge_chunks"]}
    kept["knowledge_documents"] = [row for row in rows["knowledge_documents"] if row["id"] in documents]
    return kept


def _typed(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with its times parsed to datetimes."""
    times = {name for name, value in row.items() if value is not None and isinstance(table.c[name].type, Utc)}
    return {**row, **{name: datetime.fromisoformat(row[name]) for name in times}}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)
