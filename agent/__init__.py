"""Hachi's runtime. A program imports `hachi`; read on at `agent/turn/turn.py`: one turn, in five steps."""
