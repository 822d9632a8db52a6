"""Traces: what happened in every turn, kept here for whoever asks why.

    trace.py      a trace as it is kept and read: one tree of spans
    recorder.py   from the running turn to the record, in the background
    redaction.py  what is taken out before anything is written
    store.py      in SQL: list, look up, prune, erase
    otel.py       sent on to a collector, where one is named
    comparing.py  two traces, and the first thing in which they differ

Spans themselves are `memory/spans.py`, since memory is below and has things to tell. Replays are above, in
`agent/replay`.
"""
