"""What was said: reading transcripts, and the summary of each conversation."""
