"""Whether the message of a turn states a fact, or the turn was only shown it (`echoes`)."""
