"""The files of `deploy/`: valid by their schemas, agreeing with each other, and the worker's script at work."""

import ipaddress
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kubernetes_validate
import pytest
import yaml

from helpers.paths import ROOT
from judge.scenario.toml import load_scenario

DEPLOY = ROOT / "deploy"
MANIFESTS = sorted(path.name for path in (DEPLOY / "kubernetes").glob("*.yaml"))
SCRIPTS = [DEPLOY / "worker.sh", DEPLOY / "slurm" / "shards.sbatch"]
SHELLCHECK = Path(sys.executable).with_name("shellcheck")


def manifest(name: str) -> dict[str, Any]:
    (document,) = yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text())
    assert isinstance(document, dict)
    return document


def compose() -> dict[str, Any]:
    services = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())["services"]
    assert isinstance(services, dict)
    return services


@pytest.mark.parametrize("version", ["1.33", kubernetes_validate.latest_version()])
@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_is_valid_by_the_schema_of_kubernetes(name: str, version: str) -> None:
    kubernetes_validate.validate(manifest(name), version, strict=True)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_shellcheck_finds_nothing_in_a_script(path: Path) -> None:
    completed = subprocess.run([SHELLCHECK, path], capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stdout) == (0, "")


def test_the_job_starts_as_many_pods_as_there_are_shards() -> None:
    spec = manifest("job.yaml")["spec"]
    (shard,) = spec["template"]["spec"]["containers"]
    assert {item["name"]: item.get("value") for item in shard["env"]}["WABE_SHARDS"] == str(spec["completions"])
    assert spec["maxFailedIndexes"] == spec["completions"]


def test_the_examples_participant_has_its_name_in_pods_and_in_compose() -> None:
    (participant,) = load_scenario(DEPLOY / "scenario.toml").participants
    host = urlsplit(participant.endpoint or "").hostname
    pod = manifest("job.yaml")["spec"]["template"]["spec"]
    assert pod["hostAliases"] == [{"ip": "127.0.0.1", "hostnames": [host]}]
    assert host in compose()


def test_the_files_that_compose_mounts_exist() -> None:
    volumes = compose()["worker"]["volumes"]
    sources = [volume.replace("${SCENARIO:-", "").replace("}", "").split(":")[0] for volume in volumes[:2]]
    assert [(DEPLOY / "compose" / source).is_file() for source in sources] == [True, True]


def all_containers() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in ("job.yaml", "merge.yaml"):
        pod = manifest(name)["spec"]["template"]["spec"]
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            yield f"{name}: {container['name']}", container


@pytest.mark.parametrize("name", dict(all_containers()))
def test_a_container_is_restricted_and_its_memory_limited(name: str) -> None:
    container = dict(all_containers())[name]
    context = container["securityContext"]
    assert context["readOnlyRootFilesystem"] is True
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert {"requests", "limits"} <= container["resources"].keys()
    assert "memory" in container["resources"]["limits"]


def may_reach(address: str, port: int) -> bool:
    """Whether the policy lets a pod open a TCP connection, as Kubernetes reads it."""
    for rule in manifest("network-policy.yaml")["spec"]["egress"]:
        if {"protocol": "TCP", "port": port} not in rule["ports"]:
            continue
        for block in (peer["ipBlock"] for peer in rule["to"] if "ipBlock" in peer):
            excepted = map(ipaddress.ip_network, block.get("except", ()))
            if any(ipaddress.ip_address(address) in network for network in excepted):
                continue
            if ipaddress.ip_address(address) in ipaddress.ip_network(block["cidr"]):
                return True
    return False


@pytest.mark.parametrize(
    "address",
    """
        10.96.0.1 10.244.3.7 172.20.0.1 192.168.49.2 100.64.0.9 169.254.169.254 127.0.0.1 0.0.0.0 fd00::1
        fe80::1 ::1 ::ffff:10.0.0.1 64:ff9b::a00:1 2002:a00:1::1
    """.split(),
)
def test_a_browser_reaches_nothing_in_the_cluster(address: str) -> None:
    assert not may_reach(address, 443)


@pytest.mark.parametrize(("address", "port"), [("93.184.215.14", 443), ("93.184.215.14", 80), ("2606:4700::1111", 443)])
def test_a_browser_reaches_the_public_web(address: str, port: int) -> None:
    assert may_reach(address, port)
    assert not may_reach(address, 22)


def test_the_policy_holds_for_every_pod_of_a_run_and_lets_nobody_in() -> None:
    spec = manifest("network-policy.yaml")["spec"]
    assert spec["ingress"] == []
    assert set(spec["policyTypes"]) == {"Ingress", "Egress"}
    for name in ("job.yaml", "merge.yaml"):
        labels = manifest(name)["spec"]["template"]["metadata"]["labels"]
        assert spec["podSelector"]["matchLabels"].items() <= labels.items()


# Stands for `wabe run`: writes down its shard, waits until told to go on, and ends as told.
WABE = """#!/bin/sh
echo "$WABE_SHARD $*" >> "$LOG"
while ! [ -e "$GO" ]; do sleep 0.05; done
exit "$(cat "$CODES/$WABE_SHARD" 2>/dev/null || echo 0)"
"""


class Workers:
    """Workers that share a folder, with a test program in the place of `wabe`."""

    def __init__(self, folder: Path) -> None:
        self.log, self.go, self.codes = folder / "log", folder / "go", folder / "codes"
        self.codes.mkdir()
        program = folder / "wabe"
        program.write_text(WABE)
        program.chmod(0o755)
        self._environ = {
            "PATH": f"{folder}:/usr/bin:/bin",
            "WABE_RUN_ID": "r1",
            "WABE_SHARDS": "4",
            "WABE_OUTPUT_DIR": str(folder / "out"),
            "LOG": str(self.log),
            "GO": str(self.go),
            "CODES": str(self.codes),
        }

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen([DEPLOY / "worker.sh", "s.toml", "--limit", "9"], env=self._environ)

    def started(self) -> list[str]:
        return sorted(self.log.read_text().splitlines()) if self.log.exists() else []


@pytest.fixture
def workers(tmp_path: Path) -> Workers:
    return Workers(tmp_path)


def test_workers_divide_the_shards_among_them(workers: Workers) -> None:
    running = [workers.start(), workers.start()]
    while len(workers.started()) < 2:
        assert [worker.poll() for worker in running] == [None, None]
    workers.go.touch()
    assert [worker.wait(60) for worker in running] == [0, 0]
    assert workers.started() == [f"{shard} run s.toml --limit 9 --shards auto" for shard in range(4)]


def test_a_shard_that_lost_tasks_is_started_again_and_others_are_not(workers: Workers) -> None:
    workers.go.touch()
    (workers.codes / "2").write_text("1")
    assert workers.start().wait(60) == 1
    (workers.codes / "2").unlink()
    assert workers.start().wait(60) == 0
    assert [line.split()[0] for line in workers.started()] == ["0", "1", "2", "2", "3"]


def test_a_wrong_setting_ends_the_worker_at_once(workers: Workers) -> None:
    workers.go.touch()
    (workers.codes / "0").write_text("2")
    assert workers.start().wait(60) == 2
    assert len(workers.started()) == 1


def test_stopping_a_worker_stops_its_shard(workers: Workers) -> None:
    worker = workers.start()
    while not workers.started():
        assert worker.poll() is None
    worker.terminate()
    assert worker.wait(60) == 130
    assert len(workers.started()) == 1


@pytest.mark.parametrize("output", [None, "/shared/runs"])
def test_the_slurm_script_becomes_a_shard_that_writes_to_the_shared_folder(tmp_path: Path, output: str | None) -> None:
    program = tmp_path / "wabe"
    program.write_text('#!/bin/sh\necho "$$ $WABE_OUTPUT_DIR $*"\n')
    program.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_SUBMIT_DIR": "/home/me"}
    environ |= {"WABE_OUTPUT_DIR": output} if output else {}
    script = ["bash", str(DEPLOY / "slurm" / "shards.sbatch"), "s.toml", "--max-parallel", "1"]
    with subprocess.Popen(script, env=environ, stdout=subprocess.PIPE, text=True) as shard:
        printed, _ = shard.communicate()
    # In the place of the script, so that it receives the script's signals.
    folder = output or "/home/me/.output"
    assert printed == f"{shard.pid} {folder} run s.toml --shards auto --max-parallel 4 --max-parallel 1\n"
