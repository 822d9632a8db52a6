"""The tables. SQL is the source of truth; the index is rebuilt from it."""

from memory.sql.tables.columns import Utc, metadata
from memory.sql.tables.evidence import evidence, evidence_ids, rests_on
from memory.sql.tables.facts import (
    forgettings,
    hidden,
    memories,
    memory_aliases,
    memory_owners,
    memory_tags,
    memory_updates,
    replacements,
)
from memory.sql.tables.index import (
    changes,
    index_marks,
    index_todo,
    knowledge_chunks,
    knowledge_documents,
    vectors,
)
from memory.sql.tables.operation import (
    api_keys,
    erasures,
    figures,
    trace_bodies,
    trace_rows,
    traces,
    work,
)
from memory.sql.tables.people import check_ins, context_entries, places, tasks, unkept, users
from memory.sql.tables.transcript import (
    active_conversations,
    conversations,
    deliveries,
    message_origins,
    messages,
    speakers,
)

__all__ = [
    "Utc",
    "active_conversations",
    "api_keys",
    "changes",
    "check_ins",
    "context_entries",
    "conversations",
    "deliveries",
    "erasures",
    "evidence",
    "evidence_ids",
    "figures",
    "forgettings",
    "hidden",
    "index_marks",
    "index_todo",
    "knowledge_chunks",
    "knowledge_documents",
    "memories",
    "memory_aliases",
    "memory_owners",
    "memory_tags",
    "memory_updates",
    "message_origins",
    "messages",
    "metadata",
    "places",
    "replacements",
    "rests_on",
    "speakers",
    "tasks",
    "trace_bodies",
    "trace_rows",
    "traces",
    "unkept",
    "users",
    "vectors",
    "work",
]
