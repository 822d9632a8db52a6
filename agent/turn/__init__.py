"""One turn. Start reading at `turn.py`."""
