"""The running process: what is recorded of it, which servers it leaves alone, and its name among others."""
