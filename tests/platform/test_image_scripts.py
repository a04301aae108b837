"""The scripts that build images, as they would be run."""

import re
import subprocess
from pathlib import Path

import pytest

from shared.participants import list_participants

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPTS = sorted([*ROOT.glob("scripts/*.sh"), *ROOT.glob("docker/*.sh")])


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ROOT / "scripts" / script), *arguments], capture_output=True, text=True, check=False, timeout=60, cwd="/"
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_parses_in_its_own_shell(script: Path) -> None:
    shell = "sh" if script.read_text().startswith("#!/bin/sh") else "bash"
    assert subprocess.run([shell, "-n", script], capture_output=True, check=False).stderr == b""


def test_the_script_and_the_command_find_the_same_participants() -> None:
    listed = run("build-purple-images.sh", "--list").stdout.split()
    assert listed == list(list_participants())


@pytest.mark.slow
def test_all_participants_are_built_when_none_is_named() -> None:
    lines = run("build-purple-images.sh", "--dry-run").stdout.splitlines()
    assert [line.partition("AGENT=")[2].split()[0] for line in lines] == list(list_participants())


@pytest.mark.slow
def test_a_named_participant_is_built_and_pushed_with_its_model() -> None:
    done = run(
        "build-purple-images.sh",
        "random",
        "--dry-run",
        "--push",
        "--model",
        "m-1",
        "--registry",
        "example.test/me/",
        "--tag",
        "7",
    )
    image = "example.test/me/wabe-purple-random:7"
    assert done.stdout.splitlines() == [
        f"docker build --platform linux/amd64 --file Dockerfile.purple --tag {image}"
        " --build-arg AGENT=random --build-arg MODEL=m-1 .",
        f"docker push {image}",
    ]


@pytest.mark.slow
def test_a_module_that_needs_more_libraries_is_built_from_its_own_lock() -> None:
    done = run("build-purple-images.sh", "random", "--dry-run", "--requirements", "docker/requirements-purple.lock")
    assert done.stdout.split()[-3:] == ["--build-arg", "REQUIREMENTS=docker/requirements-purple.lock", "."]


@pytest.mark.parametrize(
    ("configured", "baked"), [("gemini-2.0-flash", "gemini:gemini-2.0-flash"), ("openai:o4", "openai:o4")]
)
def test_the_judges_model_is_baked_in_with_its_provider(configured: str, baked: str) -> None:
    done = run("build-green-image.sh", "--dry-run", "--eval-model", configured)
    assert done.stdout.split()[-3:] == ["--build-arg", f"JUDGE_MODEL={baked}", "."]


@pytest.mark.slow
def test_everything_is_built_with_the_options_going_where_they_belong() -> None:
    done = run("build-all-images.sh", "random", "--dry-run", "--model", "p", "--eval-model", "e", "--tag", "9")
    green, purple = done.stdout.splitlines()
    assert "JUDGE_MODEL=gemini:e" in green
    assert green.count(":9") == purple.count(":9") == 1
    assert purple.endswith("--build-arg AGENT=random --build-arg MODEL=p .")


@pytest.mark.slow
@pytest.mark.parametrize(("flag", "count"), [("--green-only", 1), ("--purple-only", len(list_participants()))])
def test_one_side_alone_can_be_built(flag: str, count: int) -> None:
    assert len(run("build-all-images.sh", "--dry-run", flag).stdout.splitlines()) == count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("build-purple-images.sh", "nobody"), "there is no participant nobody"),
        (("build-purple-images.sh", "--modle", "x"), "--modle is not an option"),
        (("build-purple-images.sh", "--model"), "--model needs a value"),
        (("build-purple-images.sh", "--tag"), "--tag needs a value"),
        (("build-purple-images.sh", "--requirements", "none.lock"), "--requirements needs a lock file"),
        (("build-green-image.sh", "random"), "random is not an option"),
        (("build-green-image.sh", "--engine", "no-such-engine"), "no-such-engine is not installed"),
        (("build-all-images.sh", "--green-only", "--purple-only"), "leave nothing to build"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments: tuple[str, ...], complaint: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("script", ["build-green-image.sh", "build-purple-images.sh", "build-all-images.sh"])
def test_help_names_the_script_and_its_options(script: str) -> None:
    done = run(script, "--help")
    assert done.returncode == 0
    assert f"scripts/{script}" in done.stdout
    assert "--push" in done.stdout


def test_base_images_are_pinned_by_digest() -> None:
    for file in (ROOT / "Dockerfile", ROOT / "Dockerfile.purple", *(ROOT / "examples").glob("*/Dockerfile")):
        bases = re.findall(r"^FROM (\S+:\S+)", file.read_text(), re.MULTILINE)
        assert bases, file
        assert all(re.fullmatch(r"[\w.:-]+@sha256:[0-9a-f]{64}", base) for base in bases), file
        assert len(set(bases)) == 1, file
