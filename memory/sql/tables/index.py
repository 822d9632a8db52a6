"""Tables of documents, vectors, and the changes that an index has to read."""

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
    Column("owner", Text, nullable=False, comment="whose index has to read a row again"),
    Column("kind", Text, nullable=False, comment="memory, message, summary or chunk"),
    Column("id", row_id, nullable=False),
    Index("ix_changes_owner", "owner", "tx", "seq"),
    sqlite_autoincrement=True,
)

index_todo = Table(
    "index_todo",
    metadata,
    Column("seq", counter, Identity(), primary_key=True),
    Column("owner", Text, nullable=False, index=True, comment="of the row; empty while the index is filled"),
    Column("kind", Text, nullable=False, comment="memory, message, summary or chunk"),
    Column("id", row_id, nullable=False, comment="of a row to put into the server's index, or to remove"),
    Column("until", Utc, comment="when another process may do it"),
    sqlite_autoincrement=True,
)

index_marks = Table(
    "index_marks",
    metadata,
    Column("collection", Text, primary_key=True, comment="the index on a server; while there is one, …"),
    Column("mark", Text, nullable=False, comment="… which holds the same mark, changes are noted for it"),
    Column("filling", Text, comment="how far the rows are entered in index_todo; NULL: all are"),
    Column("until", Utc, nullable=False, comment="before that nobody else takes the mark for a wrong one"),
)
