"""Hachi's memory in another framework, over MCP: here the OpenAI Agents SDK with any agent of yours.
LangGraph and others connect to the same command, see docs/mcp.md.

    python examples/mcp_agent.py
"""

import asyncio
import os
import sys

from agents.mcp import MCPServerStdio


async def main() -> None:
    command = {
        "command": sys.executable,
        "args": ["-m", "hachi", "mcp", "--user", "ana"],
        "env": dict(os.environ),
    }
    async with MCPServerStdio(params=command, client_session_timeout_seconds=60) as memory:  # type: ignore[arg-type]
        # Agent(name="Helper", mcp_servers=[memory]) gives an agent of the SDK these tools.
        print("tools:", ", ".join(tool.name for tool in await memory.list_tools()))
        await memory.call_tool("remember", {"content": "Ana is allergic to nuts", "subjects": ["ana"]})
        found = await memory.call_tool("search_memories", {"query": "what is Ana allergic to?"})
        print("Ana is allergic to nuts" in str(found.content))


if __name__ == "__main__":
    asyncio.run(main())
