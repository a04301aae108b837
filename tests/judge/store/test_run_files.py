import json
import lzma

import pytest

from helpers.paths import ROOT
from judge.store.run_files import kind_of

RECORDED = ROOT / "tests" / "fixtures" / "recorded_facts" / "runs.json.xz"


def test_a_signature_covers_what_it_always_did() -> None:
    names = json.loads(lzma.decompress(RECORDED.read_bytes()))["signed"]
    assert {"run.json", "results.json", "metering.jsonl"} < set(names)
    assert [name for name in names if kind_of(name) != "recorded"] == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("anything/else.txt", "recorded"),
        ("report", "recorded"),
        ("shards/000-of-002/report/index.html", "recorded"),
        ("report/index.html", "derived"),
        ("export/attempts.csv", "derived"),
        ("films/t1.webm", "derived"),
        ("anything/report.html", "derived"),
        ("signature.dsse.json", "internal"),
        ("shards/000-of-002/.judge.lock", "internal"),
        (".live", "internal"),
    ],
)
def test_the_kind_of_a_file_follows_from_its_declaration(name: str, kind: str) -> None:
    assert kind_of(name) == kind
