"""Replays a recorded turn from its trace alone, and makes tests of traces.

cassette.py     what the trace answers in place of the real parts: the context, the model, the tools
replay.py       run today's code with those parts, for the turn and the work after it, and compare
today.py        what today's memory gives otherwise, and by what gate
live.py         whether a live model behaves the same
searching.py    searches again for what a turn was given
testing.py      the same for a trace in a file, and what came of it
pytest_file.py  write such a file and a test of it
"""
