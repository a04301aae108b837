"""The commands `wabe` and `agentbeats-run`, which first check that Python finds WABE's packages.

Those have common names (`judge`, `shared`): another installed package or a folder on PYTHONPATH may hide them. This
module must not import them before the check, and neither may `wabe/__init__.py`.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

_PACKAGES = ("judge", "participants", "shared")
_INTERRUPTED = 130


def _require_own_packages() -> None:
    """Exit with 2 and one line if Python would import another package instead of one of this project."""
    home = Path(__file__).resolve().parents[1]
    for name in _PACKAGES:
        spec = find_spec(name)
        source = Path(spec.origin).resolve() if spec and spec.origin else None
        if source != home / name / "__init__.py":
            print(  # noqa: T201
                f"error: Python finds the package {name!r} at {source or 'no file'} instead of WABE's own in {home}"
                " (uninstall the other package, take its folder out of PYTHONPATH, or install WABE in a virtual"
                " environment of its own)",
                file=sys.stderr,
            )
            sys.exit(2)


def _run(entry: str) -> None:
    try:
        _require_own_packages()
        from judge.commands import app

        getattr(app, entry)()
    except KeyboardInterrupt:
        # Ctrl-C while modules are still being imported, which takes half a second.
        sys.exit(_INTERRUPTED)


def main() -> None:
    """Entry point of `wabe`."""
    _run("main")


def agentbeats_run() -> None:
    """Entry point of `agentbeats-run`."""
    _run("agentbeats_run")


if __name__ == "__main__":
    main()
