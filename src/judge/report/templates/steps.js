// Shows one step at a time, with keyboard navigation; without this script all steps are listed.
(function () {
  const steps = Array.from(document.querySelectorAll(".step"));
  if (!steps.length) return;
  const links = Array.from(document.querySelectorAll(".film a"));
  const section = document.getElementById("steps");
  const all = document.getElementById("all");
  let now = 0;

  function wanted() {
    const found = steps.findIndex((step) => "#" + step.id === location.hash);
    return found < 0 ? 0 : found;
  }
  function show(index, said) {
    now = Math.max(0, Math.min(steps.length - 1, index));
    steps.forEach((step, place) => step.classList.toggle("now", place === now));
    links.forEach((link, place) => {
      if (place === now) link.setAttribute("aria-current", "step");
      else link.removeAttribute("aria-current");
    });
    const film = links[now].parentElement;
    film.scrollLeft = links[now].offsetLeft - film.offsetLeft - film.clientWidth / 2;
    document.getElementById("prev").disabled = now === 0;
    document.getElementById("next").disabled = now === steps.length - 1;
    // Preload the neighbours' images, so that changing steps is instant.
    [now - 1, now + 1].forEach((place) => {
      const image = steps[place] && steps[place].querySelector("img");
      if (image) new Image().src = image.src;
    });
    if (said) {
      const line = steps[now].querySelector(".line");
      document.getElementById("said").textContent =
        "Step " + (now + 1) + " of " + steps.length + ": " + (line ? line.textContent : "");
      if (!section.classList.contains("one")) steps[now].scrollIntoView({ block: "start" });
    }
  }
  function go(index) {
    if (index < 0 || index >= steps.length) return;
    history.replaceState(null, "", "#" + steps[index].id);
    show(index, true);
  }
  function toggle() {
    const one = section.classList.toggle("one");
    all.setAttribute("aria-pressed", String(!one));
    all.textContent = one ? "Show all steps" : "Show one step";
    steps[now].scrollIntoView({ block: one ? "nearest" : "start" });
  }
  document.getElementById("tools").hidden = false;
  document.getElementById("prev").addEventListener("click", () => go(now - 1));
  document.getElementById("next").addEventListener("click", () => go(now + 1));
  all.addEventListener("click", toggle);
  links.forEach((link, place) => link.addEventListener("click", (event) => {
    event.preventDefault();
    go(place);
  }));
  window.addEventListener("hashchange", () => show(wanted(), true));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const side = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (side && event.shiftKey) {
      const link = document.querySelector(side < 0 ? "a[rel=prev]" : "a[rel=next]");
      if (link) link.click();
    } else if (side) go(now + side);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(steps.length - 1);
    else if (event.key === "a") toggle();
    else return;
    event.preventDefault();
  });
  section.classList.add("one");
  show(wanted(), false);
  // After the browser's own jump, so that the row of steps is visible as well.
  if (location.hash.startsWith("#step-")) window.addEventListener("load", () => section.scrollIntoView());
})();
