import Alpine from "alpinejs";
import { clicked, late, start, text } from "./common.js";

document.getElementById("app").innerHTML = `<div x-data="page">
  <button @click="begin">Start</button><p x-text="text('first', state)"></p><p x-text="text('second', state)"></p>
  <button @click="react">React</button><p x-text="said"></p></div>`;
Alpine.data("page", () => ({
  state: "initial",
  said: "",
  text,
  init() {
    if (start === "load") this.begin();
  },
  async begin() {
    await late();
    this.state = "FINAL";
  },
  react() {
    this.said = clicked;
  },
}));
Alpine.start();
