"""Replays a recorded turn on today's code and a copy of memory, with the recorded clock, ids and model
outputs. Also generates tests from traces.

    replay.py       replay a trace and compare the two
    sandbox.py      copy the data that the turn could read
    recorded.py     what is repeated: clock, model outputs, the person's context, tool results
    fixture.py      everything to replay a turn anywhere, as JSON
    pytest_file.py  generate a pytest file from a trace
    testing.py      functions that those files import
"""
