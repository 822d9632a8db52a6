"""Finding facts and messages: recall, ranking, and the explanation of both."""
