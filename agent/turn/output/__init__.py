"""Parses the model's final answer leniently: the whole (`parse`) or as it streams in (`stream`)."""
