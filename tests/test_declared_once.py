"""What a change costs: a fact that is added in one line, in a copy of the code, is found everywhere."""

import json
import lzma
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from helpers.paths import ROOT
from helpers.plugins import skip_without_command
from helpers.recorded import recorded_run

RUN = recorded_run()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the code; its packages hide those of this checkout in `run_in`."""
    return shutil.copytree(ROOT / "src", tmp_path / "src")


def add_below(path: Path, line: str, added: str) -> None:
    text = path.read_text()
    assert text.count(line) == 1
    path.write_text(text.replace(line, line + added))


def run_in(copy: Path, program: str, *arguments: object) -> Any:
    """What a program prints as JSON in its last line."""
    environ = {**os.environ, "PYTHONPATH": f"{copy}:{ROOT / 'tests'}"}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


RECORD_GUSTS = """
import json, sys
from pathlib import Path
from typer.testing import CliRunner
from judge.commands.app import app
from judge.store.layout import run_of
from judge.trajectory.files import load_trajectory, read_attempt

run = run_of(Path(sys.argv[1]))
for task in run.tasks():
    attempt = read_attempt(task.folder)
    plain, windy = attempt.to_json(), attempt.model_copy(update={"gusts": 7}).to_json()
    task.write_result(windy)
def invoke(*arguments):
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    if done.exit_code:
        raise SystemExit(f"{arguments}: {done.output} {done.exception!r}")
    return done.stdout
rows = [json.loads(line) for line in invoke("export", run.folder, "--format", "jsonl", "--output", "-").splitlines()]
invoke("report", run.folder, "--output", run.folder / "page")
print(json.dumps({
    "added": {key: value for key, value in windy.items() if plain.get(key) != value},
    "digest": plain["trajectory_sha256"],
    "loaded": load_trajectory(task.folder).sha256,
    "read": read_attempt(task.folder).gusts,
    "rows": [row["gusts"] for row in rows],
    "page": (run.folder / "page" / "index.html").read_text(),
}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("evidence", [True, False])
def test_a_recorded_fact_is_one_line_in_the_record_and_one_in_the_row(
    copy: Path, tmp_path: Path, evidence: bool
) -> None:
    skip_without_command("export")
    fact = f"    gusts: Annotated[int, ResultKey(evidence={evidence})] = omit_default(0)\n"
    add_below(copy / "judge" / "trajectory" / "record.py", "    shared_state: bool = omit_default(False)\n", fact)
    text = '    gusts: int = column(lambda it: it.attempt.gusts, heading="Gusts")\n'
    rows = copy / "judge" / "results" / "rows.py"
    add_below(rows, "    blame: str | None = column(lambda it: it.attempt.blame)\n", text)
    run = shutil.copytree(RUN, tmp_path / "runs" / RUN.name)
    result = run_in(copy, RECORD_GUSTS, run)
    digest = result["added"].pop("trajectory_sha256", result["digest"])
    assert result["added"] == {"gusts": 7}
    assert (digest != result["digest"]) == evidence
    assert result["loaded"] == digest
    assert result["read"] == 7
    assert result["rows"].count(7) == 6
    assert "Gusts</th>" in result["page"]
    assert 'data-v="7.0">7</td>' in result["page"]


KEEP_NOTES = """
import importlib, json, shutil, subprocess, sys
from pathlib import Path
from judge.runner.uploads import Uploads, fetch_shards, open_store
from judge.store.layout import run_of
from shared.engines import ENGINES

run, url, key = run_of(Path(sys.argv[1])), sys.argv[2], Path(sys.argv[3])
for shard in run.shards():
    # The last line is torn.
    (shard.folder / "notes.jsonl").write_text(json.dumps(shard.run_id))
    with Uploads(open_store(url), shard).finished():
        pass
shutil.rmtree(run.folder)
fetch_shards(url, run)
fetched = [(shard.folder / "notes.jsonl").read_text() for shard in run.shards()]
ENGINES.load("shards").merge_shards(run)
notes = run.folder / "notes.jsonl"
merged = notes.read_text()
signing = importlib.import_module("judge.plugins.verification.signing")
signing.sign_run(run, key)
notes.write_text("changed")
changed = signing.verify_signature(run, key).mismatches
importlib.import_module("judge.plugins.all_runs.removal").remove(run)
print(json.dumps([fetched, merged, changed, run.folder.exists()]))
"""


@pytest.mark.slow
def test_a_file_of_a_run_is_one_line_and_is_uploaded_merged_signed_and_removed(copy: Path, tmp_path: Path) -> None:
    skip_without_command("merge")
    skip_without_command("sign")
    skip_without_command("runs")
    declared = copy / "judge" / "store" / "run_files.py"
    add_below(declared, "    METERING,\n", '    RunFile("notes.jsonl", uploaded="grows", has_lines=True),\n')
    text = lzma.decompress((ROOT / "tests/fixtures/recorded_facts/runs.json.xz").read_bytes())
    for name, content in json.loads(text)["files"].items():
        if name.startswith("shards/shards/"):
            path = tmp_path / "runs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
    key = tmp_path / "key.pem"
    key.write_bytes(Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    fetched, merged, changed, is_there = run_in(
        copy, KEEP_NOTES, tmp_path / "runs" / "shards", (tmp_path / "objects").as_uri(), key
    )
    assert fetched == ['"shards/shards/000-of-002"', '"shards/shards/001-of-002"']
    assert merged == "".join(f"{each}\n" for each in fetched)
    assert changed == ["notes.jsonl: changed since it was signed"]
    assert not is_there


PLAY_WITH_A_QUOTA = """
import json, sys
from pathlib import Path
from helpers.episode.scripted import ScriptedBrowser, play_episode
from shared.models import Action
visit = Action(tool="browser_navigate", params={"url": "https://shop.example/next"})

async def goes(browser, tool, params):
    browser.goes_to(params["url"])

def play(name, task_id):
    end = play_episode(Path(sys.argv[1]) / name, ScriptedBrowser(goes), *[visit] * 5, task_id=task_id)
    return [end.stop_reason, len(end.steps)]

print(json.dumps([play("one", "quota"), play("other", "t")]))
"""
QUOTA_NETWORK = '''
class QuotaNetwork(_Network):
    """The sites, for three pages only."""

    pages = 0

    def land(self, url: str) -> None:
        """See `_Network`."""
        super().land(url)
        self.pages += 1

    @property
    def has_ended(self) -> bool:
        """Whether no more pages are allowed."""
        return self.pages >= 3

'''


@pytest.mark.slow
def test_a_kind_of_network_is_a_class_and_its_condition_in_one_file(copy: Path, tmp_path: Path) -> None:
    networks = copy / "judge" / "network" / "attempt.py"
    add_below(networks, '    """The sites themselves."""\n', QUOTA_NETWORK)
    add_below(networks, "AttemptNetwork = LiveNetwork", " | QuotaNetwork")
    chosen = '    if task.task_id == "quota":\n        return QuotaNetwork(site, policy)\n'
    add_below(networks, "    site = config.sites.of(task)\n", chosen)
    assert run_in(copy, PLAY_WITH_A_QUOTA, tmp_path) == [["ended_by_page", 2], ["finished", 6]]


RANK_GUSTS = """
import importlib, json, sys
from pathlib import Path
from judge.results.rows import ENTRY_COLUMNS

old, new = map(Path, sys.argv[1:])
submission = json.loads(old.read_text())
for result in submission["results"]:
    for entry in result["detail"]["tasks"]:
        entry["gusts"] = 7
submission["participants"]["white_agent"] = "windy"
new.write_text(json.dumps(submission))
columns, ranked = importlib.import_module("judge.plugins.leaderboard.ranking").rows([old, new])
entries = [each.entry for each in ENTRY_COLUMNS if each.name == "gusts"]
print(json.dumps([columns[-1], sorted([row[0], row[-1]] for row in ranked), entries]))
"""


@pytest.mark.slow
def test_a_leaderboard_column_is_one_line_in_the_row_and_one_in_the_query(copy: Path, tmp_path: Path) -> None:
    skip_without_command("leaderboard")
    last = '        heading="Efficiency",\n        added=True,\n        public=True,\n    )\n'
    declared = "    gusts: int = column(lambda it: it.attempt.number, entry=True, added=True)\n"
    add_below(copy / "judge" / "results" / "rows.py", last, declared)
    query = copy / "judge" / "plugins" / "leaderboard" / "queries" / "overall.sql"
    ranked = ", LIST_SUM(CAST(json_extract(result, '$.detail.tasks[*].gusts') AS BIGINT[]))"
    add_below(query, "         left_out.excluded\n", f"         {ranked} AS gusts\n")
    add_below(query, ' AS "Upper Bound"', ', gusts AS "Gusts"')
    old = tmp_path / "results.json"
    shutil.copy(RUN / "results.json", old)
    column, result, entry = run_in(copy, RANK_GUSTS, old, tmp_path / "new.json")
    assert (column, entry) == ("Gusts", ["gusts"])
    assert result == [["recorded", None], ["windy", 42]]
