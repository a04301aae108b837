"""Plays a recording on a later day.

    apt install faketime
    python benchmarks/frozen later-day [--days 9] [--apart]

A small site with a log-in, a cookie that lasts a day, and a report of "the last 7 days" is recorded. Its page sends
the present date in addresses, bodies and its log-in. Then the site is stopped, and the task is played on the archive by
processes (the judge, the participant and the browser) whose clock is later by so many days.

Exit code 1 unless the attempt succeeds with full coverage on each day.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import parse_qs, urlsplit

LIBRARIES = ("lib/*/faketime/libfaketime.so.1", "local/lib/faketime/libfaketime.so.1")
DAY = "const day = ago => new Date(Date.now() - ago * 864e5).toISOString().slice(0, 10);"
LOGIN = f"""<form method="post" action="/login"><label>Name <input name="name"></label>
<label>Password <input type="password" name="password"></label><input type="hidden" name="on">
<button>Log in</button></form>
<script>{DAY} document.forms[0].on.value = day(0);</script>"""
PAGE = f"""<h1>Reports</h1><p>Today is <time></time></p><button>Last 7 days</button><p role="status"></p><script>{DAY}
document.querySelector("time").textContent = day(0);
document.querySelector("button").onclick = async () => {{
  const asked = {{ method: "POST", body: JSON.stringify({{ from: day(7), to: day(0), at: Date.now() }}) }};
  const answer = await fetch(`/report?until=${{day(0)}}&_=${{Date.now()}}`, asked);
  document.querySelector("[role=status]").textContent = (await answer.json()).text;
}};</script>"""
SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:{green}"
cmd = "wabe serve --host 127.0.0.1 --port {green}"

[[participants]]
role = "agent"
endpoint = "http://127.0.0.1:{purple}"
cmd = "wabe participant replay --script {{scenario_dir}}/replay.toml --host 127.0.0.1 --port {purple}"

[[sites]]
name = "reports"
endpoint = "{site}"
static = true
login = {{ url = "/login", username = "ada", password = "${{REPORTS_PASSWORD}}" }}

[config]
judge_model = "offline"

[[tasks]]
task_id = "report"
website = "{site}/"
task = "Show the report from {{today-7d}} to {{today}}."
reference = "replay.toml"
checks = [
  {{ kind = "element", element = "status: 3 orders from {{today-7d}} to {{today}}", description = "Shown" }},
  {{ kind = "text", contains = ["Today is {{today}}"], description = "The page is of that day" }},
  {{ kind = "request", method = "POST", url = "/report*", post_data = {{ from = "{{today-7d}}" }} }},
]
"""
SCRIPT = """
[[scripts]]
task = "Show the report from {today-7d} to {today}."
steps = [
  { tool = "browser_click", role = "button", name = "Last 7 days" },
  { tool = "finish", after = { role = "status" }, params = { answer = "Shown." } },
]
"""


class Reports(BaseHTTPRequestHandler):
    """The site."""

    def do_GET(self) -> None:
        is_known = "user=ada" in self.headers.get("Cookie", "")
        self._say(LOGIN if self.path == "/login" else PAGE if is_known else "", 200 if is_known else 403)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.path == "/login":
            is_right = parse_qs(body).get("password") == ["harbour-light"]
            self.send_response(303 if is_right else 403)
            self.send_header("Set-Cookie", "user=ada; Max-Age=86400")
            self.send_header("Location", "/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        document = json.loads(body)
        self._say(
            json.dumps({"text": f"3 orders from {document['from']} to {document['to']}"}), 200, "application/json"
        )

    def _say(self, text: str, status: int, mime: str = "text/html") -> None:
        self.send_response(200 if urlsplit(self.path).path == "/login" else status)
        self.send_header("Content-Type", mime)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def site(port: int) -> Iterator[str]:
    """The running site: its address."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Reports)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{port}"
    server.shutdown()
    server.server_close()


def play_on_day(scenario: Path, archive: Path, library: Path, days: int, output: Path) -> tuple[str, str, str]:
    """The day on which it was played by the clock of the judge, the verdict, and the coverage."""
    later = {"LD_PRELOAD": str(library), "FAKETIME": f"+{days}d", "FAKETIME_DONT_FAKE_MONOTONIC": "1"} if days else {}
    command = ["wabe", "run", str(scenario), "--archive", str(archive), "--output-dir", str(output)]
    done = subprocess.run(command, env=os.environ | later, capture_output=True, text=True, check=False)
    results = [json.loads(path.read_text()) for path in output.rglob("results/*/result.json")]
    if not results:
        sys.exit(f"{done.stdout}\n{done.stderr}")
    (record,) = (json.loads(path.read_text()) for path in output.rglob("run.json"))
    day = subprocess.run(
        ["date", "-u", "+%F", "-d", f"@{record['started_at']}"], capture_output=True, text=True, check=True
    )
    return day.stdout.strip(), results[0]["verdict"], results[0].get("coverage", "")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--days", type=int, nargs="*", default=[0, 1, 9, 400])
    parser.add_argument(
        "--library", type=Path, default=next((path for each in LIBRARIES for path in Path("/usr").glob(each)), None)
    )
    parser.add_argument("--port", type=int, default=9390, help="the first of three free ports")
    options = parser.parse_args()
    if options.library is None:
        sys.exit("libfaketime.so.1 was not found: apt install faketime, or --library")
    os.environ["REPORTS_PASSWORD"] = "harbour-light"
    is_right = True
    with TemporaryDirectory(prefix="wabe-later-") as folder:
        scenario, archive = Path(folder) / "scenario.toml", Path(folder) / "reports.wacz"
        with site(options.port) as address:
            ports = {"green": options.port + 1, "purple": options.port + 2}
            scenario.write_text(SCENARIO.format(site=address, **ports), encoding="utf-8")
            (Path(folder) / "replay.toml").write_text(SCRIPT, encoding="utf-8")
            subprocess.run(["wabe", "sites", "record", str(scenario), "-o", str(archive)], check=True)
        for days in options.days:
            day, verdict, coverage = play_on_day(scenario, archive, options.library, days, Path(folder) / f"run {days}")
            print(f"{days} days later, on {day}: {verdict}, {coverage}", flush=True)
            is_right &= (verdict, coverage) == ("success", "full")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
