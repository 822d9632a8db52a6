"""Documents, and what every index is filled from and follows."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
)

from memory.sql.tables.columns import Utc, counter, metadata, row_id

knowledge_documents = Table(
    "knowledge_documents",
    metadata,
    Column("id", row_id, primary_key=True),
    Column("owner", Text, nullable=False, comment="who may read it: user:U, place:P or global"),
    Column("path", Text, nullable=False, comment="where it was read from"),
    Column("title", Text, nullable=False),
    Column("digest", String(64), nullable=False, comment="SHA-256 of the file, and how it was cut"),
    Column("added_at", Utc, nullable=False),
    Index("uq_knowledge_documents", "owner", "path", unique=True),
)

knowledge_chunks = Table(
    "knowledge_chunks",
    metadata,
    Column("id", row_id, primary_key=True),
    Column("document_id", row_id, ForeignKey("knowledge_documents.id", ondelete="CASCADE"), nullable=False),
    Column("chunk_index", Integer, nullable=False, comment="from 0, in the document's order"),
    Column("heading", Text, nullable=False, comment="the headings it stands under, outermost first"),
    Column("text", Text, nullable=False),
    Index("uq_knowledge_chunks", "document_id", "chunk_index", unique=True),
)

vectors = Table(
    "vectors",
    metadata,
    Column("id", row_id, primary_key=True, comment="of a memory, message, summary or chunk"),
    Column("lane", Text, primary_key=True, comment="dense: of its text; window_dense: of its window"),
    Column("embedder", Text, primary_key=True),
    Column("digest", LargeBinary, nullable=False, comment="of the text that it was made of"),
    Column("vector", LargeBinary, nullable=False, comment="numbers of two bytes"),
)

changes = Table(
    "changes",
    metadata,
    Column("seq", counter, Identity(), primary_key=True),
    Column("tx", BigInteger, nullable=False, comment="PostgreSQL's number of the transaction; 0 on SQLite"),
    Column("kind", Text, nullable=False, comment="memory, message, summary or chunk"),
    Column("id", row_id, nullable=False, comment="of a row that an index is to show otherwise, or no more"),
    Index("ix_changes_position", "tx", "seq"),
)

index_positions = Table(
    "index_positions",
    metadata,
    Column("name", Text, primary_key=True, comment="a collection on a server; cut: where the log begins"),
    Column("tx", BigInteger, comment="with seq: up to where it has followed the log; NULL: to be filled"),
    Column("seq", BigInteger),
    Column("holder", Text, comment="who makes it follow now"),
    Column("until", Utc, comment="when another one may"),
)
