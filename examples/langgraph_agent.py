"""Hachi's memory in another framework, over MCP: here an agent of LangGraph. Others connect to the same
command, see docs/mcp.md. LangGraph brings an older `mcp`, so it has an environment of its own:

    pip install langchain langchain-mcp-adapters langchain-openai
    HACHI=/path/to/hachi python examples/langgraph_agent.py openai:gpt-5-mini
"""

import asyncio
import os
import sys

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient

SAID = ["I can't eat nuts.", "What should I ask for when I order a cake?"]


async def main(model: str) -> None:
    hachi = {
        "transport": "stdio",
        "command": os.environ.get("HACHI", "hachi"),
        "args": ["mcp", "--user", "ana"],
        "env": dict(os.environ),
    }
    tools = await MultiServerMCPClient({"hachi": hachi}).get_tools()
    print("tools:", ", ".join(tool.name for tool in tools))
    agent = create_agent(model, tools, system_prompt="Search your memory first, and remember what is new.")
    for text in SAID:
        answer = await agent.ainvoke({"messages": [{"role": "user", "content": text}]})
        print(answer["messages"][-1].content)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
