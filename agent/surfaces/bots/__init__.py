"""The chat bots: the code that Discord and Slack share, and a folder for each."""
