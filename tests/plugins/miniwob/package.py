"""A package as `miniwob` is: pages that begin and end an episode by the same names, without its libraries."""

from pathlib import Path

CORE = """
var core = {EPISODE_MAX_TIME: 10000, cover_div: null, EP_TIMER: null, setDataMode(mode) { WOB_DATA_MODE = mode }};
var WOB_DONE_GLOBAL = false, WOB_RAW_REWARD_GLOBAL = 0, WOB_REWARD_REASON = null, WOB_DATA_MODE = "default";
Math.seedrandom = seed => { Math.random = () => seed };
core.countdownTimer = () => setInterval(() => { document.getElementById("timer").textContent += "." }, 100);
core.startEpisode = () => {
  core.cover_div ??= document.body.appendChild(document.createElement("button"));
  core.cover_div.textContent = "START";
  core.cover_div.onclick ??= core.startEpisodeReal;
  core.cover_div.style.display = "block";
};
core.startEpisodeReal = () => {
  genProblem();
  WOB_DONE_GLOBAL = false;
  core.cover_div.style.display = "none";
  core.countdownTimer();
};
core.endEpisode = reward => {
  WOB_RAW_REWARD_GLOBAL = reward;
  WOB_DONE_GLOBAL = true;
  document.getElementById("timer").textContent = "reward " + reward;
  core.startEpisode();
};
core.getUtterance = () => document.getElementById("query").textContent;
"""
PAGE = """<!DOCTYPE html><html><head><title>A task</title><script src="../core/core.js"></script><script>
var genProblem = () => { query.textContent = `Click ${Math.random()}, ${WOB_DATA_MODE}.` };
window.onload = () => core.startEpisode();
</script></head><body><div id="query"></div><div id="reward-display"><p id="timer">time</p></div>
<button onclick="core.endEpisode(1)">right</button><button onclick="core.endEpisode(0.5)">nearly</button>
</body></html>"""
NAMES = ("click-test", "click-link", "button-delay")


def fake_package(folder: Path) -> Path:
    """A folder to import `miniwob` from. `button-delay` has a page and is not registered."""
    html = folder / "miniwob" / "html"
    for name in ("core", "common", "miniwob"):
        (html / name).mkdir(parents=True)
    (folder / "miniwob" / "__init__.py").write_text("raise ImportError('its libraries are not installed')")
    registered = "\n".join(f'    register(id="miniwob/{name}-v1")' for name in (*NAMES[:2], "flight.AA"))
    (folder / "miniwob" / "registration.py").write_text(registered)
    (html / "core" / "core.js").write_text(CORE)
    for name in NAMES:
        (html / "miniwob" / f"{name}.html").write_text(PAGE)
    return folder
