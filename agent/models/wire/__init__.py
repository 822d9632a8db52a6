"""The wire between the OpenAI client and the Agents SDK: the only package with the peculiarities of servers.

`model.py` makes the call. `out.py` writes the request in the shape that every server accepts. `incoming.py`
reads the answer, whole or streamed, with `pieces.py` and `errors.py`. `fit.py` has what was learned about a
server. The kinds of servers are in `agent/models/choice/providers.py`.
"""
