// On a narrow screen a comparison shows one run at a time, chosen by these buttons.
(function () {
  const choice = document.querySelector(".switch");
  if (!choice) return;
  const parts = document.querySelectorAll(".sides [data-side]");
  function show(side) {
    choice.querySelectorAll("button").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.side === side)));
    parts.forEach((part) => part.classList.toggle("other-side", part.dataset.side !== side));
  }
  choice.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) show(button.dataset.side);
  });
  choice.hidden = false;
  show("0");
})();
