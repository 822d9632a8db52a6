"""A shop's support bot with a tool of its own; everything else is remembered. Test it without a model: see
docs/testing.md.

    python examples/own_tool.py
"""

import asyncio

from hachi import Companion, ToolEnded, TryAgain, TurnContext

ORDERS = {"ana": {7: "on its way", 9: "waits for payment"}}


async def find_order(turn: TurnContext, number: int) -> dict[str, str]:
    """Find the state of an order of the customer who asks."""
    orders = ORDERS.get(turn.user or "", {})
    if number not in orders:
        raise TryAgain(f"number: the customer has the orders {sorted(orders)}")
    return {"state": orders[number]}


async def main() -> None:
    async with Companion.open(tools=[find_order]) as pet:
        stream = pet.stream("where is my order 7?", user="ana", instructions="Be brief.")
        async for event in stream.events():
            if isinstance(event, ToolEnded):
                print(f"{event.call.name}: {event.call.result}")
        print(stream.reply.message)


if __name__ == "__main__":
    asyncio.run(main())
