"""Runs one command and ends with everything that it started. A separate program: `python supervisor.py SPEC`.

SPEC is JSON: `argv`, `env`, `cwd` and, in a sandbox, `root` (an empty folder), `shown` (paths that exist inside, with
whether they can be written) and `ports` (ports of loopback inside, with the socket file that each leads to). It exits
as the command does: 128 plus the signal that ended it, 127 if it cannot be started, 125 without the sandbox.

When standard input ends, because whoever started this process is gone or wants the end, every process below is killed,
also one in a separate session: this process adopts orphans.
"""

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

# From <linux/prctl.h> and <linux/sockios.h>.
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_NO_SANDBOX, _NO_PROGRAM, _BY_SIGNAL = 125, 127, 128
_GRACE_S = 2.0
_CHUNK = 65_536


def main(spec: dict[str, Any]) -> int:
    """Run the command to its end."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    argv = spec["argv"]
    if root := spec.get("root"):
        try:
            _make_sandbox(Path(root), spec["shown"])
            for port, path in spec["ports"].items():
                threading.Thread(target=_forward, args=(_listening(int(port)), path), daemon=True).start()
        except (OSError, subprocess.CalledProcessError) as error:
            _say(f"the sandbox cannot be made: {error}")
            return _NO_SANDBOX
        # Without capabilities it can neither leave its root nor look into this process, whose root is the machine's.
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        argv = ["setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", "--", *argv]
    try:
        child = subprocess.Popen(
            argv,
            env=spec["env"],
            preexec_fn=lambda: _enter(root, spec["cwd"]),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        _say(f"cannot start {argv[0]}: {error.strerror or error}")
        return _NO_PROGRAM
    threading.Thread(target=_kill_at_end_of_input, args=(child,), daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: _end(child))
    code = child.wait()
    _kill_all()
    return _BY_SIGNAL - code if code < 0 else code


def _enter(root: str | None, folder: str) -> None:
    if sys.platform == "linux":
        # The command may kill this process.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if root:
        os.chroot(root)
    os.chdir(folder)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def _kill_at_end_of_input(child: "subprocess.Popen[bytes]") -> None:
    while os.read(0, _CHUNK):
        pass
    _end(child)


def _end(child: "subprocess.Popen[bytes]") -> None:
    """Ask the command to end, then kill what is left, and this process with it."""
    try:
        os.killpg(child.pid, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE_S
        while time.monotonic() < deadline and _is_running(child.pid):
            time.sleep(0.02)
    except ProcessLookupError:
        pass
    _kill_all()
    os._exit(_BY_SIGNAL + signal.SIGTERM)


def _is_running(pid: int) -> bool:
    """Whether the process has not ended. It may be a zombie for a moment, until `main` has waited for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _kill_all() -> None:
    """Kill every process below this one, again and again: the children of a killed one become this one's."""
    while children := _children():
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass


def _children() -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = path.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == os.getpid():
            found.append(int(path.parent.name))
    return found


def _make_sandbox(root: Path, shown: dict[str, bool]) -> None:
    """Fill the root: `shown` as they are outside, read-only unless true; devices, processes, and nothing else."""
    _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(root))
    for path, is_writable in shown.items():
        source, target = Path(path), root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(source.readlink())
        elif source.exists() and not target.exists():
            target.mkdir() if source.is_dir() else target.touch()
            _mount("--rbind", path, str(target))
            if not is_writable:
                _mount("-o", "remount,bind,ro", str(target))
    for name in ("proc", "dev", "tmp"):
        (root / name).mkdir(exist_ok=True)
    _mount("-t", "proc", "proc", str(root / "proc"))
    for name in ("null", "zero", "full", "random", "urandom"):
        (root / "dev" / name).touch()
        _mount("--bind", f"/dev/{name}", str(root / "dev" / name))
    _bring_up_loopback()


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def _bring_up_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", _IFF_UP))


def _listening(port: int) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    sock.listen(64)
    return sock


def _forward(sock: socket.socket, path: str) -> None:
    """Lead each connection to the socket file, which the network namespace does not hide."""
    while True:
        inside, _ = sock.accept()
        outside = socket.socket(socket.AF_UNIX)
        try:
            outside.connect(path)
        except OSError:
            inside.close()
            outside.close()
            continue
        for source, target in ((inside, outside), (outside, inside)):
            threading.Thread(target=_copy, args=(source, target), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(_CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for each in (source, target):
            each.close()


if __name__ == "__main__":
    sys.exit(main(json.loads(Path(sys.argv[1]).read_text())))
