"""The queue of background jobs, and the messages that chat platforms delivered."""
