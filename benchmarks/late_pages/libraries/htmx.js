// The server's own markup replaces the two texts.
import htmx from "htmx.org";
import { clicked, start, text, url } from "./common.js";

const trigger = start === "load" ? "load" : "click";
document.getElementById("app").innerHTML = `
  <button hx-get="${url("piece")}" hx-target="#texts" hx-trigger="${trigger}">Start</button>
  <div id="texts"><p>${text("first", "initial")}</p><p>${text("second", "initial")}</p></div>
  <button hx-on:click="document.getElementById('said').textContent = '${clicked}'">React</button><p id="said"></p>`;
htmx.process(document.body);
