"""Messages, summaries of conversations, and the sources of replies."""
