"""The model's final answer, parsed leniently: whole (`answer`) and while it streams in (`stream`)."""
