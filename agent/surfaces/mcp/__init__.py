"""Offer the memory tools to other agents, over the Model Context Protocol."""
