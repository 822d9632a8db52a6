"""The document library: parse files, cut them into chunks, and index, search and quote those.

library.py     `DocumentLibrary`: what callers use     files.py       finds files in folders and reads them
store.py       documents and chunks in SQL             parsing.py     in processes of their own, by formats/
search.py      candidates, filtered and ordered        formats/       Markdown, HTML, PDF and text to blocks
quote.py       chunks as a block for a prompt          chunking.py    blocks to chunks
"""
