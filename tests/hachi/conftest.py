from tests.agent.conftest import first_way, pet_at

__all__ = ["first_way", "pet_at"]
