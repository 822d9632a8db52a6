"""Documents to answer from: files are parsed, cut into chunks, indexed, searched and quoted.

library.py     `DocumentLibrary`: what callers use     files.py       finds files in folders and reads them
ingest.py      one run of adding documents             formats/       Markdown, HTML, PDF and text to blocks
store.py       documents and chunks in SQL             chunking.py    blocks to chunks
search.py      candidates, filtered and reranked       index_sync.py  keeps the index in step with SQL
quote.py       chunks as a block for a prompt          rerank/        puts candidates in order
"""

from memory.documents.formats.blocks import UnreadableDocument
from memory.documents.ingest import AddedDocument, IngestProgress, IngestResult
from memory.documents.library import DocumentLibrary, document_name
from memory.documents.quote import get_rag_context_for_query
from memory.documents.rerank import Candidate, Reranker
from memory.documents.rerank.fused import FusedReranker

__all__ = [
    "AddedDocument",
    "Candidate",
    "DocumentLibrary",
    "FusedReranker",
    "IngestProgress",
    "IngestResult",
    "Reranker",
    "UnreadableDocument",
    "document_name",
    "get_rag_context_for_query",
]
