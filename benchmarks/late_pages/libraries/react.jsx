// Built twice: with React 18 and with React 19.
import React, { startTransition, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { clicked, late, start, text } from "./common.js";

function Late() {
  const [asked, setAsked] = useState(start === "load");
  const [state, setState] = useState("initial");
  const [said, setSaid] = useState("");
  useEffect(() => {
    let current = true;
    if (asked) late().then(() => current && startTransition(() => setState("FINAL")));
    return () => (current = false);
  }, [asked]);
  return (
    <>
      <button onClick={() => setAsked(true)}>Start</button>
      <p>{text("first", state)}</p>
      <p>{text("second", state)}</p>
      <button onClick={() => setSaid(clicked)}>React</button>
      <p>{said}</p>
    </>
  );
}

createRoot(document.getElementById("app")).render(<Late />);
