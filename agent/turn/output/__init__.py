"""Parses the model's final answer leniently: the whole (`answer`) or as it streams in (`stream`)."""
