"""Traces: the database stores what happened in every turn, so that people can find out why.

    trace.py           a stored trace: a summary and a tree of spans
    recorder.py        record running turns to the database, in the background
    calls.py           what a trace holds of the arguments and the result of a call
    setup.py           open the recorder that the settings ask for
    serialization.py   convert a tree of spans to bytes and back
    redact.py          remove secrets before a trace is written
    store/             SQL: write, list, find, add up; filters; prune, erase, forget
    differences.py     the differences between two traces, in order
    prices.py          what a turn cost
    why/               why the model was given a memory, or was not
    render/            a trace as a tree of text lines to some depth, and as files
    otlp/              traces as OpenTelemetry spans, sent to a collector

Spans are defined in `memory/process/spans.py`, because memory records spans too. Replays are in
`agent/replay`.
"""
