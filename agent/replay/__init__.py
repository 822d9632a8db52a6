"""Replays: a recorded turn runs again on today's code and a copy of what is remembered, with the clock, the
ids and the model's outputs that it had. And tests made of traces.

    replay.py       replay a trace and compare the two
    run.py          run one turn in a temporary companion
    sandbox.py      copy what the turn could read into it
    model.py        a model that repeats recorded outputs
    tools.py        tools as they are, with recorded results, or doing nothing
    fixture.py      all that a turn needs to be replayed anywhere, as JSON
    pytest_file.py  a pytest file made of a trace
    testing.py      what those files import
"""
