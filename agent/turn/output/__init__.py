"""The answer: in one model (`answer`), parsed leniently whole (`parse`) or as it streams in (`stream`)."""
