"""The wire: between the OpenAI client and the Agents SDK, the only place that knows a server's habits.

`model.py` makes the call. `out.py` writes the request in the shape that every server takes. `incoming.py`
reads whatever comes back, whole or streamed, with `calls.py` and `errors.py`. `provider_state.py` holds what
a provider wants sent back, and `fit.py` what was learned of a server. Its kind is in
`agent/models/choice/providers.py`.
"""
