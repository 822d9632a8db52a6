"""What a chat server asks for itself: a title, tags, follow-up questions. One plain question to the model,
with no persona, tools or memory, and nothing of it is kept."""

from agent.companion import Companion


async def do_chore(pet: Companion, task: str) -> str:
    """The model's answer as it wrote it. Raises ModelError."""
    from agent.models.ask import ask
    from agent.models.failures import model_error

    house = (await pet.runtime()).turn
    try:
        return await ask(house.model, "chore", task)
    except Exception as error:
        fault = model_error(error, pet.settings)
        if fault is None:
            raise
        raise fault from error
