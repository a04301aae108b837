"""Signed runs: every change of a signed file is detected, and named."""

import random
import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typer.testing import CliRunner

from helpers.results import a_finished_run, a_result
from judge.commands.app import app
from judge.plugins.verification.signing import sign_run, verify_signature
from judge.results.signatures import signer_of
from judge.store.layout import RunStore
from judge.store.run_files import ENVELOPE
from shared.errors import ConfigError


def a_key(folder: Path, name: str = "key", form: str = "pem") -> Path:
    key = Ed25519PrivateKey.generate()
    layout = serialization.PrivateFormat.PKCS8 if form == "pem" else serialization.PrivateFormat.OpenSSH
    private, public = folder / f"{name}.{form}", folder / f"{name}-public.{form}"
    plain = serialization.NoEncryption()
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, layout, plain))
    of_public = (
        (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        if form == "pem"
        else (serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    )
    public.write_bytes(key.public_key().public_bytes(*of_public))
    return private


def public_of(private: Path) -> Path:
    return private.with_name(f"{private.stem}-public{private.suffix}")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return a_key(tmp_path)


@pytest.fixture
def store(tmp_path: Path, key: Path) -> RunStore:
    run = a_finished_run(tmp_path / "out", a_result("t1"), a_result("t2", "max_steps"))
    sign_run(run, key)
    return run


def signed_files(store: RunStore) -> list[Path]:
    return sorted(path for path in store.folder.rglob("*") if path.is_file() and path.stat().st_size)


def test_a_signed_run_matches(store: RunStore, key: Path) -> None:
    verification = verify_signature(store, public_of(key))
    assert (verification.mismatches, verification.added) == ((), ())
    assert str(verification.fingerprint).startswith("SHA256:")


@pytest.mark.slow
def test_every_change_of_one_byte_is_detected(store: RunStore, key: Path) -> None:
    draw, files = random.Random(1979), signed_files(store)
    missed = []
    for number in range(200):
        path = draw.choice(files)
        data = bytearray(whole := path.read_bytes())
        place = draw.randrange(len(data))
        data[place] ^= draw.randint(1, 255)
        path.write_bytes(data)
        if not any(path.name in each for each in verify_signature(store, public_of(key)).mismatches):
            missed.append((number, path.name, place))
        path.write_bytes(whole)
    assert missed == []


def test_every_byte_of_the_envelope_counts(store: RunStore, key: Path) -> None:
    path = store.folder / ENVELOPE.name
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x20]) + whole[place + 1 :])
        assert len(verify_signature(store, public_of(key)).mismatches) == 1, place


def test_a_wrong_key_is_one_line(store: RunStore, tmp_path: Path) -> None:
    (line,) = verify_signature(store, public_of(a_key(tmp_path, "other"))).mismatches
    assert line.startswith(f"{ENVELOPE.name}: signed with the key 'SHA256:")


def test_a_statement_of_another_run_is_one_line(store: RunStore, tmp_path: Path, key: Path) -> None:
    other = a_finished_run(tmp_path / "out", a_result("t1"), run_id="run-2")
    shutil.copy(store.folder / ENVELOPE.name, other.folder / ENVELOPE.name)
    assert verify_signature(other, public_of(key)).mismatches == (
        f"{ENVELOPE.name}: the statement is about run 'run-1', not 'run-2'",
    )


def test_a_removed_file_is_one_line(store: RunStore, key: Path) -> None:
    (store.results / "t1" / "steps.jsonl").unlink()
    assert verify_signature(store, public_of(key)).mismatches == ("results/t1/steps.jsonl: signed, and missing",)


def test_a_file_exchanged_for_a_link_is_changed(store: RunStore, key: Path, tmp_path: Path) -> None:
    path = store.folder / "results.json"
    shutil.copy(path, tmp_path / "same.json")
    path.unlink()
    path.symlink_to(tmp_path / "same.json")
    assert verify_signature(store, public_of(key)).mismatches == ("results.json: changed since it was signed",)


def test_what_people_look_at_and_no_signature_covers_is_listed(store: RunStore, key: Path) -> None:
    for name in ("report/index.html", "report/tasks/t1.html", "report.html", "export/films/t1.webm", ".judge.lock"):
        path = store.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    verification = verify_signature(store, public_of(key))
    assert verification.uncovered == ("export/ (1 file)", "report.html", "report/ (2 files)")
    arguments = ["verify", str(store.folder), "--key", str(public_of(key))]
    assert "note: report/ (2 files): not covered by the signature" in CliRunner().invoke(app, arguments).output


def test_later_files_are_listed_and_reports_are_not(store: RunStore, key: Path) -> None:
    for name in ("results/t1/verdicts/other-1.json", "report/index.html", "report.html", ".judge.lock"):
        (store.folder / name).parent.mkdir(exist_ok=True)
        (store.folder / name).write_text("{}")
    verification = verify_signature(store, public_of(key))
    assert (verification.mismatches, verification.added) == ((), ("results/t1/verdicts/other-1.json",))


def test_a_run_without_a_statement_is_not_signed(tmp_path: Path, key: Path) -> None:
    run = a_finished_run(tmp_path / "out", a_result("t1"))
    assert verify_signature(run, key).mismatches == (f"{ENVELOPE.name}: missing, the run is not signed",)


def test_a_key_of_openssh_signs_as_well(tmp_path: Path) -> None:
    run, key = a_finished_run(tmp_path / "out", a_result("t1")), a_key(tmp_path, form="ssh")
    sign_run(run, key)
    assert verify_signature(run, public_of(key)).mismatches == ()


@pytest.mark.parametrize("content", [b"", b"no key", b"-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"])
def test_an_unusable_key_is_one_line(store: RunStore, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.pem").write_bytes(content)
    with pytest.raises(ConfigError, match=r"bad\.pem has no private Ed25519 key"):
        sign_run(store, tmp_path / "bad.pem")


def test_the_signer_of_a_submission_is_known_only_for_the_signed_file(store: RunStore, key: Path) -> None:
    path = store.folder / "results.json"
    assert signer_of(path) == verify_signature(store, key).fingerprint
    path.write_text(path.read_text() + " ")
    assert signer_of(path) is None


@pytest.mark.parametrize("name", ["out/runs/20260102-1", "downloads/20260101-1", "my runs/copy (2)"])
def test_a_run_is_signed_and_verified_in_any_folder(tmp_path: Path, key: Path, name: str) -> None:
    run = a_finished_run(tmp_path / "out", a_result("t1"), a_result("t2", "max_steps"))
    copied = Path(shutil.move(run.folder, tmp_path / name))
    signed = CliRunner().invoke(app, ["sign", str(copied), "--key", str(key)])
    assert (signed.exit_code, f"{copied}/{ENVELOPE.name}" in signed.output.replace("\n", "")) == (0, True), (
        signed.output
    )
    again = shutil.copytree(copied, tmp_path / "elsewhere")
    completed = CliRunner().invoke(app, ["verify", str(again), "--key", str(public_of(key))])
    # Their judge is made up.
    items = [line for line in completed.output.splitlines() if line.startswith("does not match: ")]
    assert [line.split(": ")[1] for line in items] == ["judging code", "prompt set"]
    assert "note: the statement is signed with SHA256:" in completed.output
    (again / "results" / "t2" / "result.json").write_text("{}")
    changed = CliRunner().invoke(app, ["verify", str(again), "--key", str(public_of(key))])
    assert changed.exit_code == 1
    assert "does not match: results/t2/result.json: changed since it was signed" in changed.output


def test_the_commands_sign_and_verify(store: RunStore, key: Path) -> None:
    signed = CliRunner().invoke(app, ["sign", str(store.folder), "--key", str(key)])
    assert (signed.exit_code, "signed with SHA256:" in signed.output) == (0, True)
    (store.folder / "results" / "t2" / "result.json").write_text("{}")
    completed = CliRunner().invoke(app, ["verify", str(store.folder), "--key", str(public_of(key))])
    assert completed.exit_code == 1
    assert "does not match: results/t2/result.json: changed since it was signed" in completed.output
