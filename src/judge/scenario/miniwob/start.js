// Runs in every MiniWoB++ page, after the page's own scripts. Starts the one episode that a browser context gets: a page
// that is loaded a second time, or another one, is lost.
"use strict";
(() => {
  const isAgain = localStorage.getItem("started") !== null;
  localStorage.setItem("started", "1");
  addEventListener("load", () => {
    // The overlay comes back at the end of the episode, and would start another one.
    core.cover_div.onclick = null;
    if (isAgain) {
      WOB_DONE_GLOBAL = true;
      WOB_RAW_REWARD_GLOBAL = -1;
      WOB_REWARD_REASON = "the page was loaded again";
      return;
    }
    // Nobody sees it, and its ticks would be changes of the page.
    core.countdownTimer = () => {};
    // The judge has limits of its own.
    core.EPISODE_MAX_TIME = 86400000;
    // As the package begins an episode.
    Math.seedrandom(Number(new URLSearchParams(location.search).get("seed")));
    core.setDataMode("train");
    core.startEpisodeReal();
    const said = core.getUtterance();
    globalThis.WOB_UTTERANCE = typeof said === "string" ? said : said.utterance;
  });
})();
