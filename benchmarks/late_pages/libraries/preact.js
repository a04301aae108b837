import { h, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { clicked, late, start, text } from "./common.js";

function Late() {
  const [asked, setAsked] = useState(start === "load");
  const [state, setState] = useState("initial");
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (asked) late().then(() => setState("FINAL"));
  }, [asked]);
  return [
    h("button", { onClick: () => setAsked(true) }, "Start"),
    h("p", null, text("first", state)),
    h("p", null, text("second", state)),
    h("button", { onClick: () => setSaid(clicked) }, "React"),
    h("p", null, said),
  ];
}

render(h(Late), document.getElementById("app"));
