"""The only place where parts are put together; `agent/companion.py` opens and closes what is built here.

`components` opens what remembers: databases, indexes, and what works on them, and loads nothing slow.
`services` makes what surfaces call. `runtime` adds what a turn needs, on first use: the Agents SDK takes
seconds to import.
"""
