"""A model from a file on this machine: `server.py` starts llama.cpp as a child process, `child.py`."""
