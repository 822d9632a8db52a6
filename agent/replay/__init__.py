"""A recorded turn, taken again: the same clock, the same ids, the model's recorded answers, on a copy of what
was remembered; and a test made of it."""
