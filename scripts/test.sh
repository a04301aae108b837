#!/usr/bin/env bash
# Sets up what is missing, then runs every check: format, lint, types, tests.
#   scripts/test.sh            everything
#   scripts/test.sh --quick    format, lint, and the tests without a browser or a network beyond loopback
# Further arguments go to pytest. WABE_TEST_WORKERS is how many processes run tests.
set -euo pipefail
cd "$(dirname "$0")/.."

quick=no
if [ "${1:-}" = --quick ]; then
  quick=yes
  shift
fi
scripts/setup.sh --dev
export PATH="$PWD/.venv/bin:$PATH"
ruff format --check .
ruff check .
# Tests wait for browsers and servers much of the time, so a few more workers than cores pay off.
workers=${WABE_TEST_WORKERS:-$(($(nproc 2>/dev/null || echo 2) * 3 / 2))}
# By file: the fixtures of a module are made once, and a file may hold fixed ports for itself.
options=(-n "$workers" --dist loadfile)
if [ "$quick" = yes ]; then
  exec pytest "${options[@]}" -m "not e2e" --ignore=tests/interop "$@"
fi
mypy
if [ $# -gt 0 ]; then
  exec pytest "${options[@]}" "$@"
fi
pytest "${options[@]}" -m "not alone"
exec pytest -m alone
