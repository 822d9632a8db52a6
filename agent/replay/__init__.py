"""Replays a recorded turn on today's code and a copy of memory, with the recorded clock, ids and model
outputs. Also generates tests from traces.

    replay.py       replay a trace and compare the two
    run.py          run one turn in a temporary companion
    sandbox.py      copy the data that the turn could read
    model.py        a model that repeats recorded outputs
    tools.py        tools that run, return recorded results, or do nothing
    fixture.py      everything to replay a turn anywhere, as JSON
    pytest_file.py  generate a pytest file from a trace
    testing.py      functions that those files import
"""
