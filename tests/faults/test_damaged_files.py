"""A damaged file, one of the wrong kind or one out of reach is one line that names it, whatever command reads it."""

import codecs
import json
import os
import resource
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.cases import each
from helpers.llm.scripted import ScriptedModel, parts_for, trajectory, webjudge_script
from helpers.plugins import sign_run, skip_without_command
from helpers.results import a_finished_run, a_result, a_submission
from helpers.runner.scenario_runs import interrupted_run, write_scenario
from judge.commands.app import app, command_app
from judge.judges.webjudge import WebJudge
from judge.runner.boundary import run_command
from judge.store.layout import RunStore

# A command that waits for a FIFO would wait for ever.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
Leave = Callable[..., tuple[int, str]]


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 300_000_000)


# What may lie where a file is expected.
KINDS: dict[str, Callable[[Path], object]] = {
    "null": lambda path: path.write_text("null"),
    "empty list": lambda path: path.write_text("[]"),
    "text": lambda path: path.write_text('"x"'),
    "number": lambda path: path.write_text("3"),
    "number that is too large": lambda path: path.write_text('{"a": 1e999}'),
    "400 digits": lambda path: path.write_text('{"a": ' + "9" * 400 + "}"),
    "key twice": lambda path: path.write_text('{"a": 1, "a": 2}'),
    "nested 100000 deep": lambda path: path.write_text("[" * 100_000 + "]" * 100_000),
    "nested 500 deep": lambda path: path.write_text('{"a":' * 500 + "1" + "}" * 500),
    "empty": lambda path: path.write_bytes(b""),
    "binary": lambda path: path.write_bytes(bytes(range(256))),
    "UTF-16": lambda path: path.write_bytes('{"a": 1}'.encode("utf-16")),
    "Git LFS pointer": lambda path: path.write_bytes(POINTER),
    "huge": sparse,
    "folder": lambda path: path.mkdir(),
    "FIFO": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "link to itself": link_to_itself,
    "missing": lambda path: None,
    "read error": lambda path: path.symlink_to("/proc/self/mem"),
}


@pytest.fixture
def leave(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Leave:
    """Runs a command to its end: its exit code, and what it says."""
    for name in ("WABE_OUTPUT_DIR", "WABE_JUDGE_MODEL", "EVAL_MODEL"):
        monkeypatch.delenv(name, raising=False)

    def left(*arguments: object) -> tuple[int, str]:
        skip_without_command(*arguments)
        command, *rest = map(str, arguments)
        used, words = (command_app("run"), rest) if command == "agentbeats-run" else (app, [command, *rest])
        with pytest.raises(SystemExit) as exit_info:
            run_command(used, words, name="wabe")
        output = capsys.readouterr()
        return int(str(exit_info.value.code)), output.out + output.err

    return left


def replaced(path: Path, kind: str) -> Path:
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    KINDS[kind](path)
    return path


# Commands that are given a file, with the place of the file in the command line.
FILES: dict[str, tuple[str, ...]] = {
    "agentbeats-run": ("agentbeats-run", "FILE.toml"),
    "tasks validate": ("tasks", "validate", "FILE.toml"),
    "tasks sample": ("tasks", "sample", "--from", "FILE.json"),
    "tasks import": ("tasks", "import", "FILE.json"),
    "merge": ("merge", "FILE.json"),
    "leaderboard": ("leaderboard", "FILE.json"),
    "leaderboard --query": ("leaderboard", "SUBMISSION", "--query", "FILE.sql"),
    "agreement": ("agreement", "FILE.csv"),
    "agreement --labels": ("agreement", "--verdicts", "RUN", "--labels", "FILE.json"),
    "export --dataset": ("export", "RUN", "--dataset", "FILE.json"),
    "participant": ("participant", "replay", "--script", "FILE.toml"),
}


@pytest.mark.parametrize("command", FILES)
def test_a_file_that_cannot_be_used_ends_a_command_with_one_line(tmp_path: Path, leave: Leave, command: str) -> None:
    run = a_finished_run(tmp_path / "out", a_result("t1"))
    submission = tmp_path / "submission.json"
    submission.write_text(json.dumps(a_submission()))
    known = {"RUN": str(run.folder), "SUBMISSION": str(submission)}
    arguments = [known.get(word, str(tmp_path / word) if word.startswith("FILE.") else word) for word in FILES[command]]
    path = next(Path(word) for word in arguments if "FILE." in word)
    wrong = {}
    for kind in KINDS:
        code, text = leave(*arguments) if replaced(path, kind) else (0, "")
        if code != 2 or path.name not in text or len(text.splitlines()) != 1:
            wrong[kind] = (code, text)
    assert wrong == {}


RUN_COMMANDS: dict[str, tuple[str, ...]] = {
    "verify": ("verify", "RUN"),
    "verify --key": ("verify", "RUN", "--key", "KEY"),
    "leaderboard": ("leaderboard", "SUBMISSION"),
    "report": ("report", "RUN"),
    "score": ("score", "RUN", "--model", "offline"),
    "export": ("export", "RUN"),
    "agreement": ("agreement", "--labels", "LABELS", "--verdicts", "RUN"),
}
RUN_FILES = {"run.json", "results.json", "results/t1/result.json", "results/t1/verdicts/webjudge-1.json"}
RUN_FILES |= {f"results/t1/{name}" for name in ("steps.jsonl", "snapshots/step_000.yaml", "trajectory/step_000.jpg")}
# What may be beside them: the statement of a signature, and the ledger of a meter.
RUN_FILES |= {"signature.dsse.json", "metering.jsonl"}
DAMAGE = (
    "null",
    "number that is too large",
    "nested 100000 deep",
    "nested 500 deep",
    "folder",
    "FIFO",
    "device",
    "huge",
)


@pytest.mark.slow
@pytest.mark.parametrize("command", each(RUN_COMMANDS, suite=RUN_COMMANDS.keys() - {"leaderboard", "verify --key"}))
def test_no_damage_to_a_run_ends_a_command_with_a_traceback(tmp_path: Path, leave: Leave, command: str) -> None:
    run = a_finished_run(tmp_path, a_result("t1"))
    (tmp_path / "labels.csv").write_text("task_id,human\nt1,1\n")
    (run.folder / "metering.jsonl").touch()
    key = tmp_path / "key.pem"
    key.write_bytes(Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    sign_run(run, key)
    known = {"RUN": run.folder, "LABELS": tmp_path / "labels.csv", "KEY": key}
    known["SUBMISSION"] = run.folder / "results.json"
    ends: set[int] = set()
    for name in sorted(RUN_FILES):
        path = run.folder / name
        before = path.read_bytes()
        for kind in DAMAGE:
            ends.add(
                leave(*(known.get(word, word) for word in RUN_COMMANDS[command]) if replaced(path, kind) else ())[0]
            )
        replaced(path, "missing")
        path.write_bytes(before)
    assert ends <= {0, 1, 2}


async def test_a_screenshot_that_is_a_git_lfs_pointer_is_reported_as_one(tmp_path: Path) -> None:
    recorded = trajectory(tmp_path)
    recorded.screenshots[0].write_bytes(POINTER)
    verdict = await WebJudge(parts_for(ScriptedModel(webjudge_script()))).judge(recorded)
    assert verdict.outcome == "unscored"
    assert "Git LFS pointer" in verdict.reason
    assert "git lfs pull" in verdict.reason


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in which permissions count: as root, the test acts as an ordinary user."""
    # Python imports them when a host name is looked up, which that user may not be able to.
    for codec in ("idna", "punycode"):
        codecs.lookup(codec)
    with tempfile.TemporaryDirectory() as name:
        is_root = os.geteuid() == 0
        if is_root:
            os.chown(name, 65534, 65534)
            os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            if is_root:
                os.seteuid(0)


def readable_again(path: Path) -> None:
    path.chmod(0o700)


@pytest.mark.parametrize("what", ["the run", "its record"])
def test_resuming_a_run_that_cannot_be_used_is_one_line(
    folder: Path, leave: Leave, request: pytest.FixtureRequest, what: str
) -> None:
    run = interrupted_run(write_scenario(folder / "s.toml"), folder / "out")
    place, mode = {"the run": (run.folder, 0o500), "its record": (run.folder / "run.json", 0o000)}[what]
    place.chmod(mode)
    request.addfinalizer(lambda: readable_again(place))
    code, text = leave("agentbeats-run", folder / "s.toml", "--output-dir", folder / "out", "--resume", run.run_id)
    assert code == 2
    assert "Traceback" not in text
    assert run.run_id in text.splitlines()[-1]


@pytest.mark.parametrize("command", ["merge", "leaderboard", "verify", "score", "report"])
def test_what_may_not_be_read_is_named(folder: Path, leave: Leave, command: str) -> None:
    run = a_finished_run(folder / "out", a_result("t1"))
    target = run.folder / "results.json" if command in ("merge", "leaderboard") else run.results
    target.chmod(0)
    code, text = leave(command, target if target.is_file() else run.folder)
    target.chmod(0o700)
    assert code in (1, 2)
    assert "results" in text
    assert "Permission denied" in text


def test_a_full_disk_names_the_file_that_could_not_be_written(tmp_path: Path, leave: Leave) -> None:
    path = tmp_path / "submission.json"
    path.write_text(json.dumps(a_submission()))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        code, text = leave("merge", path, "--output", tmp_path / "merged.json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert code == 2
    assert "merged.json" in text


@pytest.mark.parametrize("command", ["verify", "report", "score", "export", "doctor"])
def test_links_that_lead_back_to_themselves_are_one_line(tmp_path: Path, leave: Leave, command: str) -> None:
    for name in ("results", "runs"):
        link_to_itself(tmp_path / name)
    code, _ = leave(command, *([] if command == "doctor" else ["latest"]), "--output-dir", tmp_path)
    assert code in (0, 1, 2)
    assert command == "doctor" or code == 2


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=3,
)


@pytest.fixture
def run(tmp_path: Path) -> RunStore:
    return a_finished_run(tmp_path, a_result("t1"))


@pytest.mark.slow
@given(file=st.sampled_from(["run.json", "results.json", "results/t1/result.json"]), data=st.data())
@settings(suppress_health_check=list(HealthCheck))
def test_no_value_of_the_wrong_type_in_a_run_ends_a_command_with_a_traceback(
    run: RunStore, leave: Leave, file: str, data: st.DataObject
) -> None:
    before = (run.folder / file).read_bytes()
    place = value = json.loads(before)
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(ANY)
    try:
        (run.folder / file).write_text(json.dumps(value))
        for command in (("verify",), ("report",), ("score", "--model", "offline")):
            assert leave(*command, run.folder)[0] in (0, 1, 2)
    finally:
        (run.folder / file).write_bytes(before)
