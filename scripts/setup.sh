#!/usr/bin/env bash
# Makes .venv from the locked requirements and sees to a browser. Quick when there is nothing to do.
#   scripts/setup.sh          what running needs
#   scripts/setup.sh --dev    what testing needs as well
set -euo pipefail
cd "$(dirname "$0")/.."

lock=requirements.lock
[ "${1:-}" = --dev ] && lock=requirements-dev.lock

say() { printf '%s\n' "setup: $*" >&2; }
stop() { say "$*"; exit 2; }

is_new='import sys; sys.exit(sys.version_info < (3, 11, 2))'
python=${WABE_PYTHON:-}
for candidate in ${python:-python3.14 python3.13 python3.12 python3.11 python3}; do
  if command -v "$candidate" >/dev/null && "$candidate" -c "$is_new" 2>/dev/null; then
    python=$candidate
    break
  fi
  python=""
done
[ -n "$python" ] || stop "Python 3.11.2 or newer is needed; install it, or name one with WABE_PYTHON=/path/to/python"

# The stamp names the lock that the environment was made from; the larger lock serves the smaller one's purpose.
stamp=.venv/wabe-lock
want=$(cat requirements.lock "$lock" pyproject.toml | cksum | tr -d ' ')
have=$(cat "$stamp" 2>/dev/null || true)
full=$(cat requirements.lock requirements-dev.lock pyproject.toml | cksum | tr -d ' ')
if [ "$have" != "$want" ] && [ "$have" != "$full" ]; then
  if ! [ -x .venv/bin/python ] || ! .venv/bin/python -c "$is_new"; then
    say "making .venv with $("$python" --version)"
    "$python" -m venv .venv || stop "cannot make .venv; on Debian and Ubuntu: apt-get install python3-venv"
  fi
  # An environment that another tool made may come without pip.
  .venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip --upgrade >/dev/null
  say "installing $(grep -c '==' "$lock") packages from $lock: a few minutes the first time"
  # The lock lists everything. Without --no-deps, older pips (23.2) look for a newer version of what is required with extras.
  # On a terminal with its progress, in a log without a line for each package.
  quiet=--quiet
  [ ! -t 2 ] || quiet=""
  .venv/bin/python -m pip install $quiet --disable-pip-version-check --require-hashes --no-deps -r "$lock"
  say "installing WABE itself"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
  printf '%s\n' "$want" > "$stamp"
fi
if [ "${1:-}" = --dev ]; then
  # What the tests of WebArena-Verified's evaluator run: it needs other versions of our libraries.
  say "making the environment of WebArena-Verified's evaluator, if there is none"
  PYTHONPATH=tests .venv/bin/python -m helpers.interop.environments webarena >/dev/null ||
    say "the environment of WebArena-Verified could not be made; its tests will fail"
  if ! command -v redis-server >/dev/null; then
    as_root=""
    [ "$(id -u)" = 0 ] || as_root="sudo"
    if command -v apt-get >/dev/null; then
      say "installing redis-server"
      { $as_root apt-get update -qq && $as_root apt-get install -y -qq --no-install-recommends redis-server; } \
        >.venv/redis.log 2>&1
    fi || say "redis-server could not be installed (see .venv/redis.log)"
    command -v redis-server >/dev/null || say "install redis-server: without it, tests of shared limits fail"
  fi
fi

if ! .venv/bin/wabe doctor --browser --quiet; then
  say "no browser found; downloading Playwright's own Chromium (about 100 MB; .venv/browser.log)"
  as_root=""
  [ "$(id -u)" = 0 ] || as_root="sudo"
  if .venv/bin/python -m playwright install --only-shell chromium >.venv/browser.log 2>&1; then
    # The download works without the system's libraries, the browser does not; only some systems can add them.
    $as_root .venv/bin/python -m playwright install-deps chromium >>.venv/browser.log 2>&1 ||
      say "could not install the browser's system libraries (see .venv/browser.log)"
  else
    say "that did not work here (see .venv/browser.log); trying the system's package manager"
    if command -v apt-get >/dev/null; then
      say "installing Chromium with apt-get"
      $as_root apt-get update -qq
      $as_root apt-get install -y -qq --no-install-recommends chromium-headless-shell fonts-liberation fonts-dejavu-core \
        libatomic1 >>.venv/browser.log 2>&1 ||
        $as_root apt-get install -y -qq --no-install-recommends chromium fonts-liberation libatomic1 >>.venv/browser.log 2>&1 ||
        stop "apt-get could not install Chromium; see .venv/browser.log"
    elif command -v dnf >/dev/null; then
      $as_root dnf install -y -q chromium-headless >>.venv/browser.log 2>&1 || stop "dnf could not install Chromium; see .venv/browser.log"
    elif command -v brew >/dev/null; then
      brew install --cask chromium >>.venv/browser.log 2>&1 || stop "brew could not install Chromium; see .venv/browser.log"
    fi
  fi
  .venv/bin/wabe doctor --browser || stop "still no browser; install Chromium or Chrome, or set WABE_BROWSER_PATH"
fi

# Screenshots show boxes in scripts that no font is for. Tried once, without asking for a password: few pages need them.
if ! [ -e .venv/wabe-fonts ]; then
  if ! .venv/bin/wabe doctor --fonts --quiet && command -v apt-get >/dev/null; then
    as_root=""
    [ "$(id -u)" = 0 ] || as_root="sudo -n"
    say "installing fonts"
    { $as_root apt-get update -qq && $as_root apt-get install -y -qq --no-install-recommends \
      fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji; } >.venv/fonts.log 2>&1 ||
      say "fonts could not be installed (see .venv/fonts.log); wabe doctor --fonts names the scripts drawn as boxes"
  fi
  touch .venv/wabe-fonts
fi
