"""Documents to look things up in: files are read, cut along their structure, indexed, searched and quoted.

files.py       what lies in folders, read whole      formats.py  bytes to blocks: markdown.py, html.py,
cutting.py     blocks to chunks                                  pdf.py, plain.py
documents.py   the record in SQL                     ingest.py   one run of adding
library.py     `Knowledge`: what callers use         rerank/     which few chunks are worth reading
quoting.py     chunks as a block for a prompt
"""

from memory.knowledge.blocks import Unreadable
from memory.knowledge.files import Unread
from memory.knowledge.ingest import Ingested, Step, Taken
from memory.knowledge.library import Knowledge
from memory.knowledge.naming import document_name
from memory.knowledge.quoting import get_rag_context_for_query
from memory.knowledge.rerank import Candidate, Reranker
from memory.knowledge.rerank.fused import FusedReranker

__all__ = [
    "Candidate",
    "FusedReranker",
    "Ingested",
    "Knowledge",
    "Reranker",
    "Step",
    "Taken",
    "Unread",
    "Unreadable",
    "document_name",
    "get_rag_context_for_query",
]
