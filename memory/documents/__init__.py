"""The document library: parse files, cut them into chunks, and index, search and quote those.

library.py     `DocumentLibrary`: what callers use     files.py       finds files in folders and reads them
store.py       documents and chunks in SQL             parsing.py     in processes of their own, by formats/
search.py      candidates, filtered and reranked       formats/       Markdown, HTML, PDF and text to blocks
reranking.py   puts candidates in order                chunking.py    blocks to chunks
quote.py       chunks as a block for a prompt
"""
