"""One turn: `turn.py` tells the story."""
