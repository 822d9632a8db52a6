"""Creates and connects the components; `agent/companion.py` opens and closes them.

`components` opens databases and indexes, creates the groups of operations that surfaces call, and loads
nothing slow. `runtime` adds what a turn needs, on first use, because importing the Agents SDK takes seconds.
"""
