"""The memory tools for other agents, over the Model Context Protocol."""
