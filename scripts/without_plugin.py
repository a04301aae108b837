"""Shows that a plug-in can be removed: runs the tests in a copy without its folder and without its tests.

    python scripts/without_plugin.py NAME[,NAME…] [--imports] [pytest arguments]

`all` takes away every plug-in, `each` one at a time, `halves` about half of them at a time: for any two plug-ins, there
is a run with the first and without the second. `--imports` only imports every module and reads every command's help.
Otherwise the quick suite runs. `sizes.py` counts the code lines of the core and of each plug-in.
"""

import itertools
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLUGINS = Path("src/judge/plugins")


def plugin_names() -> list[str]:
    """The plug-ins of this checkout."""
    return sorted(path.parent.name for path in (ROOT / PLUGINS).glob("*/__init__.py"))


def halves(names: Sequence[str]) -> list[list[str]]:
    """Groups in which, for any two names, the first is without the second in at least one (Sperner's theorem)."""
    count = next(number for number in itertools.count(2) if math.comb(number, number // 2) >= len(names))
    groups_of = dict(zip(names, itertools.combinations(range(count), count // 2), strict=False))
    return [[name for name in names if group in groups_of[name]] for group in range(count)]


def copy_without(names: Sequence[str], target: Path) -> None:
    """Copy what git tracks, and what it does not ignore, to `target`, without the plug-ins and their tests."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    left_out = tuple(f"{folder}/{name}/" for folder in (PLUGINS.as_posix(), "tests/plugins") for name in names)
    for each in listed.stdout.split("\0"):
        source = ROOT / each
        # A link may lead to a folder.
        if each and not each.startswith(left_out) and (source.is_symlink() or source.is_file()):
            (target / each).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target / each, follow_symlinks=False)
    # Documents that are made from what is installed.
    for script in ("plugins", "schemas", "settings"):
        run_in(target, [f"scripts/{script}.py"])
    # Tests ask git which files there are.
    subprocess.run(["git", "init", "-q", str(target)], check=True)
    subprocess.run(["git", "-C", str(target), "add", "-A"], check=True)


def run_in(copy: Path, command: Sequence[str]) -> int:
    """Run Python in the copy, whose packages hide those of this checkout."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(copy / "src"), str(copy / "tests")])}
    return subprocess.run([sys.executable, *command], cwd=copy, env=environ, check=False).returncode


# Imports every remaining module, and reads the help of every remaining command.
CHECK = """
import importlib, pathlib, sys
source = pathlib.Path("src").resolve()
for path in sorted(source.rglob("*.py")):
    if path.name != "__main__.py":
        name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            # Programs for another environment, and optional packages.
            if (error.name or "").partition(".")[0] in {"judge", "shared", "participants", "wabe"}:
                raise
from typer.testing import CliRunner
from judge.commands.app import app, command_names, command_app
for name in command_names():
    done = CliRunner().invoke(command_app(name), ["--help"])
    assert done.exit_code == 0, (name, done.output)
print(f"{len(sys.modules)} modules and {len(command_names())} commands are fine")
"""


def main(arguments: Sequence[str]) -> int:
    """Run the script; returns its exit code."""
    given, *rest = arguments or ("",)
    if given in {"each", "halves"}:
        groups = halves(plugin_names()) if given == "halves" else [[name] for name in plugin_names()]
        codes = {",".join(group): main([",".join(group), *rest]) for group in groups}
        print("\n".join(f"{'failed' if code else 'passed'} without {names}" for names, code in codes.items()))
        return max(codes.values())
    names = plugin_names() if given == "all" else given.split(",")
    if unknown := [name for name in names if name not in plugin_names()]:
        print(f"error: unknown plug-in {unknown[0]!r}; there are: {', '.join(plugin_names())}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="wabe-without-") as place:
        copy = Path(place)
        copy_without(names, copy)
        if "--imports" in rest:
            return run_in(copy, ["-c", CHECK])
        options = ["-m", "not e2e and not slow", "--ignore=tests/interop", "-q", *rest]
        return run_in(copy, ["-m", "pytest", *options])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
