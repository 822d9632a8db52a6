"""The house of a turn, built on an archive: the models are chosen here."""

from typing import TYPE_CHECKING

from agent.archive import Archive, read_persona
from agent.background.consolidation import Upkeep
from agent.background.worker import Aftercare
from agent.judge import ModelJudge
from agent.models import ChosenModel, choose_model, explain, given_model
from agent.settings import Settings
from agent.tracing.setup import open_recorder
from agent.turn.prompt import Budgets
from agent.turn.turn import House
from tools.registry import TOOLS

if TYPE_CHECKING:
    from agents.models.interface import Model


def build_house(
    archive: Archive, given: "Model | None", given_upkeep: "Model | None", surface: str = "python"
) -> "tuple[House, ChosenModel | None]":
    """The house, and the model that does the upkeep, which is closed beside the one that answers."""
    settings = archive.settings
    model = given_model(given) if given else choose_model(settings)
    upkeep = _upkeep_model(archive, model, given, given_upkeep)
    usual = "model" if given is None or given_upkeep is not None else "plain"
    looks_back = upkeep is not None and (settings.look_back or usual) == "model"
    if settings.judge and upkeep is not None:
        archive.likeness.judge = ModelJudge(upkeep)
        if looks_back:  # the call that looks back rules on what is said in a turn
            archive.likeness.judged = frozenset({"note"})
    looking_back = Upkeep(
        database=archive.database,
        conversations=archive.conversations,
        contexts=archive.contexts,
        store=archive.store,
        tasks=archive.tasks,
        queue=archive.queue,
        remembering=archive.remembering,
        likeness=archive.likeness,
        clock=archive.clock,
        model=upkeep if looks_back else None,
        judging=settings.judge,
        mode=settings.mode,
        summary=settings.summary_budget,
        context=settings.context_budget,
        explain=lambda error: explain(error, _for_upkeep(settings)),
    )
    recorder = archive.recorder = open_recorder(archive, surface)
    aftercare = Aftercare(
        archive.queue,
        archive.remembering,
        looking_back,
        archive.indexing,
        archive.recall,
        archive.index,
        archive.clock,
        recorder,
    )
    house = House(
        settings=settings,
        clock=archive.clock,
        model=model,
        database=archive.database,
        transcript=archive.transcript,
        conversations=archive.conversations,
        contexts=archive.contexts,
        store=archive.store,
        knowledge=archive.knowledge,
        tasks=archive.tasks,
        queue=archive.queue,
        recall=archive.recall,
        remembering=archive.remembering,
        aftercare=aftercare,
        budgets=Budgets(
            settings.context_budget,
            settings.summary_budget,
            settings.history_budget,
            settings.knowledge_budget,
        ),
        recorder=recorder,
        tools=TOOLS,
        persona=read_persona(settings.persona),
    )
    return house, upkeep if upkeep is not model else None


def _upkeep_model(
    archive: Archive, model: ChosenModel, given: "Model | None", given_upkeep: "Model | None"
) -> ChosenModel | None:
    """What judges and looks back; None where only the offline stand-in is there."""
    settings = archive.settings
    if given_upkeep is not None:
        return given_model(given_upkeep)
    if given is None and settings.offline:
        return None
    if settings.upkeep_model and given is None:
        return choose_model(_for_upkeep(settings))
    return model


def _for_upkeep(settings: Settings) -> Settings:
    """With the model that does the upkeep as the model."""
    return settings.model_copy(update={"model": settings.upkeep_model or settings.model})
