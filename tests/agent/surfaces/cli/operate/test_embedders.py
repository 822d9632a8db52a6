import json

from memory.index.embedders.openai import OpenAIEmbedder


def test_the_bundled_embedder_is_measured_and_keeps_its_thresholds(hachi):
    ran = hachi("embedders", "calibrate", HACHI_EMBEDDER="bundled")
    assert ran.code == 0
    for shown in (
        "questions and their answers",
        "272",
        "dedupe 0.98, recall 0.21, floor 0.17",
        "nothing was",
    ):
        assert shown in ran.out
    assert not (hachi.home / "embedders.json").exists()


def test_another_embedder_has_the_measured_thresholds_from_then_on(hachi, monkeypatch):
    async def letters(self, texts):
        return [[1.0 + text.lower().count(letter) for letter in "abcdefgh"] for text in texts]

    monkeypatch.setattr(OpenAIEmbedder, "_requests", letters)
    monkeypatch.setattr("memory.index.embedders.openai.DIMENSIONS", {"mine": 8})
    given = {"HACHI_EMBEDDER": "openai:mine", "OPENAI_API_KEY": "sk-1"}

    ran = hachi("embedders", "calibrate", "--json", "--dry-run", **given)
    assert (ran.json["stored"], (hachi.home / "embedders.json").exists()) == (False, False)
    ran = hachi("embedders", "calibrate", "--json", **given)
    found = ran.json
    assert (found["embedder"], found["stored"]) == ("openai:mine", True)
    assert found["similarities"]["questions and other lines"]["pairs"] == 272
    kept = json.loads((hachi.home / "embedders.json").read_text())
    floor = found["thresholds"].pop("floor")
    assert kept == {"openai:mine": found["thresholds"]}
    assert 0 < floor < found["thresholds"]["recall"]
