"""Documents to answer from: files are parsed, cut into chunks, indexed, searched and quoted.

library.py     `DocumentLibrary`: what callers use     files.py       finds files in folders and reads them
ingest.py      one run of adding documents             formats/       Markdown, HTML, PDF and text to blocks
store.py       documents and chunks in SQL             chunking.py    blocks to chunks
search.py      candidates, filtered and reranked
quote.py       chunks as a block for a prompt          rerankers/     puts candidates in order
"""
