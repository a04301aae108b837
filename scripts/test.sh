#!/usr/bin/env bash
# Sets up what is missing, then runs every check: format, lint, types, tests.
#   scripts/test.sh            everything
#   scripts/test.sh --quick    format, lint, and most tests: without browsers, types, networks beyond loopback, and
#                              whatever takes seconds
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
# Hundreds of processes import this code: each would compile it again.
unset PYTHONDONTWRITEBYTECODE
python -m compileall -q src
ruff format --check .
ruff check .
# Tests make and delete a hundred thousand files. Some file systems look at each one deleted lately before they make another,
# so the tests' folders are in memory where there is enough.
options=()
temp=
if [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -1)" -gt 8000000 ] 2>/dev/null; then
  temp=$(mktemp -d /dev/shm/wabe.XXX)
  options+=(--basetemp "$temp/t")
fi
types=$(mktemp)
# Folders of failed tests are kept, as they are on a disk.
trap 'kept=$?; rm -f "$types"; if [ "$kept" = 0 ]; then rm -rf ${temp:+"$temp"}; fi' EXIT
# Tests wait for browsers and processes: more workers than cores pay off. With twice as many, limits run out.
cores=$(nproc 2>/dev/null || echo 2)
options+=(-n "${WABE_TEST_WORKERS:-$((cores * 3 / 2))}" --dist loadfile)
if [ "$quick" = yes ]; then
  pytest "${options[@]}" -m "not e2e and not slow" --ignore=tests/interop -o console_output_style=classic "$@"
  exit
fi
mypy >"$types" 2>&1 &
checking=$!
status=0
# By file, in the order in which they are collected: what a module's fixtures start is started once.
pytest "${options[@]}" --no-loadscope-reorder "$@" || status=$?
if [ "$status" = 1 ]; then
  # A limit on a browser's time may run out on a machine that is busy with other tests. Alone, it may not.
  echo "What failed runs once more, alone; it counts as passed only if all of it passes now."
  status=0
  pytest "$@" --last-failed --last-failed-no-failures=none -n 0 --exitfirst || status=$?
fi
wait "$checking" || status=$?
cat "$types"
exit "$status"
