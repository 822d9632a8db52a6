"""`hachi embedders`: measure the thresholds of an embedder that nobody has calibrated."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from agent.surfaces.cli.output import Output, print_table
from agent.surfaces.cli.session import Session, with_session

group = typer.Typer(help="Calibrate the embedder.", rich_markup_mode=None)

GROUPS = {
    "same": "lines that say the same",
    "different": "lines that say different things",
    "answered": "questions and their answers",
    "unanswered": "questions and other lines",
}


@group.callback()
def _group() -> None:
    """Keep `calibrate` a command of its own, though it is the only one."""


@group.command()
@with_session
async def calibrate(
    session: Session,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the thresholds.")] = False,
) -> Output:
    """Measure the thresholds of the embedder, and keep them.

    From which similarity two lines may say the same, and below which they are unrelated. It embeds some 100
    short lines; none of them is yours.
    """
    from agent.models.providers import base_url_of
    from memory.index.embedders import open_embedder
    from memory.index.embedders.calibration import calibrate, store_thresholds
    from memory.search.recall import FLOOR

    settings = session.settings()
    name = settings.chosen_embedder
    embedder = open_embedder(
        name,
        api_key=settings.openai_api_key.get_secret_value() if settings.openai_api_key else None,
        base_url=base_url_of(settings),
    )
    try:
        measured = await calibrate(embedder)
    finally:
        await embedder.close()
    kept = not dry_run and name != "bundled"
    if kept:
        store_thresholds(settings.home, name, measured.thresholds)
    found = asdict(measured.thresholds) | {"floor": round(FLOOR * measured.thresholds.recall, 2)}
    similarities = {label: _spread(getattr(measured, field)) for field, label in GROUPS.items()}
    ending = "used from the next start on" if kept else "nothing was stored"
    if name == "bundled":
        ending += ", since the bundled embedder has its own, measured on more"

    def table() -> None:
        rows = [[label, *map(str, spread.values())] for label, spread in similarities.items()]
        print_table(("similarity of", "pairs", "lowest", "middle", "highest"), rows)
        print(f"{name}: {', '.join(f'{key} {value:.2f}' for key, value in found.items())}; {ending}")

    return Output(
        {"embedder": name, "stored": kept, "similarities": similarities, "thresholds": found}, table
    )


def _spread(cosines: Sequence[float]) -> dict[str, float]:
    lowest, middle, highest = (round(cosines[at], 2) for at in (0, len(cosines) // 2, -1))
    return {"pairs": len(cosines), "lowest": lowest, "middle": middle, "highest": highest}
