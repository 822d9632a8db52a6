"""Replays a recorded turn from its trace alone, and makes tests of traces.

cassette.py   what the trace answers in place of the real parts: the context, the model, the tools
replay.py     run today's code with those parts, for the turn and the work after it, and compare
today.py      what today's memory finds otherwise
testing.py    replay a trace in a file, and write such a file with a test of it
"""
