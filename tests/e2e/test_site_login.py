"""A run on a site with a `login` whose sessions end with each reset."""

import json
from pathlib import Path

import pytest

from helpers.browser.login_site import PASSWORD, USER, login_site
from helpers.ports import free_ports
from helpers.runner.commands import BIN, run_command

pytestmark = pytest.mark.e2e
SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:{judge}"
cmd = "wabe serve --host 127.0.0.1 --port {judge}"
[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:{agent}"
cmd = "wabe participant random --host 127.0.0.1 --port {agent}"
[[sites]]
name = "shop"
endpoint = "{site}"
reset_url = "{site}/reset"
login = {{ url = "/login", username = "{user}", password = "${{SHOP_PASSWORD}}" }}
[config]
judge_model = "offline"
max_steps = 1
[[tasks]]
task_id = "a"
website = "{site}/"
task = "Look."
checks = [{{ kind = "element", element = 'heading "Welcome, Emma"', at = "any" }}]
[[tasks]]
task_id = "b"
website = "{site}/"
task = "Look again."
# What the judge itself writes, to reset the site and to log in, is not held.
writes = "hold"
checks = [{{ kind = "element", element = 'heading "Welcome, Emma"', at = "any" }}]
"""


@pytest.mark.nightly
def test_every_attempt_is_logged_in_and_no_file_of_the_run_has_the_password(tmp_path: Path) -> None:
    judge, agent = free_ports(2)
    path = tmp_path / "s.toml"
    with login_site() as site:
        path.write_text(SCENARIO.format(judge=judge, agent=agent, site=site.url.rstrip("/"), user=USER))
        words = (BIN / "wabe", "run", path, "--display", "none")
        completed = run_command(tmp_path / "temp", *words, cwd=tmp_path, env={"SHOP_PASSWORD": PASSWORD})
        assert site.paths.count("/reset") == 2
    [results] = (tmp_path / ".output").glob("runs/*/results.json")
    tasks = json.loads(results.read_text())["results"][0]["detail"]["tasks"]
    collected = [file.read_text() for file in results.parent.rglob("snapshots/step_000.yaml")]
    assert len(tasks) == len(collected) == 2, completed
    assert all("Welcome, Emma" in text for text in collected)
    files = [file for file in results.parent.rglob("*") if file.is_file()]
    assert not [file for file in files if PASSWORD.encode() in file.read_bytes()]
