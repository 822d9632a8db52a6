"""Run a model from a file on this machine, in a child process with llama.cpp."""
