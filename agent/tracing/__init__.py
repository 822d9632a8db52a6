"""Traces: a stored record of every turn, so that people can find out why something happened.

`trace.py` defines a stored trace, `recorder.py` records turns in the background, `store/` writes and lists
traces, and `render/` shows one as a tree. Spans are defined in `memory/process/spans.py`, because memory
records them too.
"""
