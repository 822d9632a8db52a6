"""Creates and connects the components; `agent/companion.py` opens and closes them.

`components` opens databases and indexes, and loads nothing slow. `runtime` adds what a turn needs, on first
use, because importing the Agents SDK takes seconds.
"""
