"""Bring a model of your own: anything that is a `Model` of the OpenAI Agents SDK. This one follows a script.

    python examples/own_model.py

A model calls tools and ends with one JSON object, {"message": …, "memories": […]}. Here its first call asks
for the `remember` tool and its second one answers; the turn runs both, and stores what both want kept.
"""

import asyncio
import json

from agents.testing import ScriptedModel, assistant_message, function_call

from hachi import Companion

TOOL_CALL = function_call(
    "remember",
    {"content": "Ana is allergic to nuts", "subjects": ["ana", "health"], "ttl": None, "importance": 0.9},
    call_id="first",
)
ANSWER = assistant_message(
    json.dumps(
        {
            "message": "No nuts, noted. And a good trip to Rome!",
            "memories": [
                {
                    "content": "Ana is in Rome",
                    "subjects": ["ana"],
                    "ttl": "7d",
                    "type": "fact",
                    "importance": 0.6,
                }
            ],
        }
    )
)


async def main() -> None:
    model = ScriptedModel([[TOOL_CALL], [ANSWER]])
    async with Companion.open(model=model, periodic_jobs=False) as pet:
        reply = await pet.respond("I can't eat nuts. Off to Rome for a week!", user="ana", settle=True)
        print(reply.message)
        for kept in reply.memories:
            until = f", until {kept.expires_at:%Y-%m-%d}" if kept.expires_at else ""
            print(f"{kept.action}: {kept.content}{until}")
        print(f"{reply.calls} model calls, tools: {[tool.name for tool in reply.tools]}")


if __name__ == "__main__":
    asyncio.run(main())
