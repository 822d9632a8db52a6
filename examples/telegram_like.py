"""A platform of your own: Hachi in a chat with Telegram's Bot API. docs/surfaces.md explains each step.

TELEGRAM_URL=https://api.telegram.org/bot<TOKEN> python examples/telegram_like.py
"""

import asyncio
import os
from typing import Any

import httpx

from hachi import ClientTurn, Companion, ForgetCandidate, HachiError, Place, Reminder


class Chat:
    def __init__(self, pet: Companion, http: httpx.AsyncClient) -> None:
        self.pet = pet
        self.http = http
        self.asked: dict[str, tuple[ForgetCandidate, ...]] = {}

    async def call(self, method: str, **arguments: Any) -> Any:
        answer = await self.http.post(f"/{method}", json=arguments)
        answer.raise_for_status()
        return answer.json()["result"]

    async def receive(self, message: dict[str, Any]) -> None:
        chat, user = message["chat"]["id"], f"telegram:{message['from']['id']}"
        place = None if message["chat"]["type"] == "private" else Place(("telegram", str(chat)))
        if message["text"] == "/yes":
            gone = await self.pet.memories.forget_confirmed(self.asked.pop(user, ()), user=user, place=place)
            await self.post(chat, "\n".join(f"Forgotten: {one.content}" for one in gone) or "Nothing.")
            return
        origin = f"telegram:{chat}:{message['message_id']}"
        before = await self.pet.conversations.sent(origin)
        if before and before.posts:
            return  # it was delivered, and answered, before
        if not (before and before.reply):
            quoted = message.get("reply_to_message") or {}
            words = f"{quoted['from']['first_name']}: {quoted['text']}" if quoted.get("text") else ""
            reply = await self.pet.respond(
                message["text"],
                user=user,
                place=place,
                author=message["from"]["first_name"],
                origins=[origin],
                client=ClientTurn(replies_to=words) if words else None,
            )
            id, text = reply.message_id, reply.message
            if reply.forget:
                self.asked[user] = reply.forget
                text += "".join(f"\n- {one.content}" for one in reply.forget) + "\nTo forget this, write /yes"
        else:  # answered, and the process ended before the answer was posted
            id, text = before.reply.id, before.reply.text
        post = await self.post(chat, text)
        if id:  # None where the person wants nothing kept
            await self.pet.conversations.posted(id, [post])

    async def post(self, chat: int, text: str) -> str:
        sent = await self.call("sendMessage", chat_id=chat, text=text)
        return f"telegram:{sent['chat']['id']}:{sent['message_id']}"

    async def delete(self, post: str) -> None:
        _, chat, id = post.split(":")
        await self.call("deleteMessage", chat_id=int(chat), message_id=int(id))

    async def remind(self, reminder: Reminder, text: str) -> str:
        chat = reminder.place.path[-1:] or reminder.task.user_id.split(":")[1:]
        return await self.post(int(chat[0]), text)

    async def run(self, offset: int = 0) -> None:
        while True:
            for update in await self.call("getUpdates", offset=offset, timeout=20):
                if (message := update.get("message") or {}).get("text"):
                    try:
                        await self.receive(message)
                    except HachiError as error:
                        await self.post(message["chat"]["id"], str(error))
                offset = update["update_id"] + 1  # from now on it is not delivered again
            await self.pet.conversations.delete_forgotten("telegram:", self.delete)


async def main() -> None:
    async with Companion.open() as pet, httpx.AsyncClient(base_url=os.environ["TELEGRAM_URL"]) as http:
        chat = Chat(pet, http)
        pet.reminders.register("telegram:", chat.remind)
        await chat.run()


if __name__ == "__main__":
    asyncio.run(main())
