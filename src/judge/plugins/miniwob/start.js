// Runs in every MiniWoB++ page, after the page's scripts. Starts the only episode of a browser context: loading the
// page again, or another one, loses it.
"use strict";
(() => {
  const isAgain = localStorage.getItem("started") !== null;
  localStorage.setItem("started", "1");
  addEventListener("load", () => {
    // The overlay returns at the end of the episode, and would start another one.
    core.cover_div.onclick = null;
    if (isAgain) {
      WOB_DONE_GLOBAL = true;
      WOB_RAW_REWARD_GLOBAL = -1;
      WOB_REWARD_REASON = "the page was loaded again";
      return;
    }
    // It is hidden, and its ticks would count as changes of the page.
    core.countdownTimer = () => {};
    // The judge's limits apply.
    core.EPISODE_MAX_TIME = 86400000;
    // Begin the episode as the package does.
    Math.seedrandom(Number(new URLSearchParams(location.search).get("seed")));
    core.setDataMode("train");
    core.startEpisodeReal();
    const said = core.getUtterance();
    globalThis.WOB_UTTERANCE = typeof said === "string" ? said : said.utterance;
  });
})();
