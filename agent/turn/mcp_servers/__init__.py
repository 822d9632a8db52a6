"""Other programs' tools: the MCP servers that a file names, connected when they are first needed."""
