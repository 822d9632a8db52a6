"""The chat bots: what Discord and Slack share, and a folder for each."""
