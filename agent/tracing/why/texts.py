"""Why the model was given a summary or a passage of a document in a turn, or was not; and whether a summary
told it of a fact or message."""

from sqlalchemy import and_, or_, select

from agent.tracing.why.gates import Asked, Gate, Why, fitting, gate, readable, ways
from memory.sql.engine import Database
from memory.sql.tables import active_conversations as summaries
from memory.sql.tables import knowledge_chunks, knowledge_documents, messages, rests_on

MOST = 3
"""Summaries, and passages, that are explained."""


async def in_summary(database: Database, asked: Asked, id: str) -> list[Gate]:
    """Return whether the summary in the turn's prompt was written from this fact or message; nothing where
    there was none."""
    c = summaries.c
    shown = select(c.id, c.summary).where(c.id.in_(asked.shown))
    if not await database.rows(shown):
        return []
    stated = select(rests_on.c.derived_id).where(rests_on.c.source_id == id, rests_on.c.how == "covered")
    here = and_(messages.c.conversation_id == c.conversation_id, messages.c.seq <= c.covered)
    said = select(messages.c.id).where(messages.c.id == id, here).exists()
    covering = await database.rows(shown.where(or_(c.id.in_(stated), said)))
    told = [f"written from it; by now it reads “{row.summary}”" for row in covering]
    return [Gate("in a summary" if told else "not in the summary", bool(told), "".join(told), way=True)]


async def explain_texts(database: Database, asked: Asked, wanted: str) -> list[Why]:
    """Explain the summaries and the passages of documents that fit."""
    return [*await _summaries(database, asked, wanted), *await _passages(database, asked, wanted)]


async def _summaries(database: Database, asked: Asked, wanted: str) -> list[Why]:
    c = summaries.c
    query = select(c.id, c.owner, c.summary, c.withheld, c.conversation_id)
    if asked.listed is not None:
        query = query.where(c.owner.in_(asked.listed))
    found = []
    for row in await fitting(database, query, c.summary, wanted, c.updated_at.desc(), most=MOST):
        told = f"of the conversation {row.conversation_id}"
        gates = [
            readable(asked, [row.owner]),
            gate("withheld", not row.withheld, "it is to be written again"),
        ]
        gates += ways(asked, row.id, told, kind="summary")
        found.append(Why(row.id, row.summary, tuple(gates), "summary", bool(asked.trace)))
    return found


async def _passages(database: Database, asked: Asked, wanted: str) -> list[Why]:
    chunk, document = knowledge_chunks.c, knowledge_documents.c
    query = select(chunk.id, chunk.text, document.owner, document.title, document.added_at)
    query = query.join(knowledge_documents, document.id == chunk.document_id)
    if asked.listed is not None:
        query = query.where(document.owner.in_(asked.listed))
    found = []
    for row in await fitting(database, query, chunk.text, wanted, chunk.id, most=MOST):
        in_time = row.added_at <= asked.at
        gates = [readable(asked, [row.owner]), gate("added later", in_time, otherwise="added before")]
        gates += ways(asked, row.id, "only what bears on the message is quoted before it", kind="document")
        found.append(Why(row.id, f"{row.title}: {row.text}", tuple(gates), "document", bool(asked.trace)))
    return found
