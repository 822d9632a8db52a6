"""Traces: what happened in every turn, kept in the database for those who ask why.

    trace.py           a trace as it is stored and read: a summary and a tree of spans
    recorder.py        from the running turn to the database, in the background
    model_call.py      one model call: the exact request and the exact output
    setup.py           the recorder that the settings ask for
    serialization.py   a tree of spans to bytes and back
    redact.py          what is taken out before anything is written
    store.py           SQL: list, look up, prune, erase
    compare.py         the differences between two traces, in order
    stats.py           calls, times and tokens over many traces
    filters.py         what people type to choose traces
    render/            a trace as a tree of text lines, in short and in full; as files of every format
    opentelemetry.py   the same as OpenTelemetry spans: OTLP/JSON, or sent to a collector

Spans are defined in `memory/spans.py`, because memory records spans too. Replays are in `agent/replay`.
"""
