"""The queue of background work, and what chat platforms delivered."""
