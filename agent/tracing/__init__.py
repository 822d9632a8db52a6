"""Traces: the database stores what happened in every turn, so that people can find out why.

`trace.py` is a stored trace, `recorder.py` records turns in the background, `store/` writes and lists them,
`render/` shows one as a tree. Spans are defined in `memory/process/spans.py`: memory records them too.
"""
