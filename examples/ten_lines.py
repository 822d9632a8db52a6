import asyncio

from hachi import Companion


async def main() -> None:
    async with Companion.open() as pet:  # settings come from the environment
        reply = await pet.respond("I broke my shoulder on January 10", user="mickael")
        print(reply.message)
        async for text in pet.stream("what happened to me?", user="mickael"):
            print(text, end="", flush=True)
        print()
        await pet.remember("Mickael has the flu", user="mickael", subjects=["mickael"], ttl="7d")
        for hit in await pet.search_memories("flu", user="mickael", limit=3):
            print(f"{hit.score:.2f} {hit.kind}: {hit.content}")


asyncio.run(main())
