"""Creates and connects the components; `agent/companion.py` opens and closes them.

`components` opens databases and indexes, and loads nothing slow. `services` creates the groups of operations
that surfaces call. `runtime` adds what a turn needs, on first use, because importing the Agents SDK takes
seconds.
"""
