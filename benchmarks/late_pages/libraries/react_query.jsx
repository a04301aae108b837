// A query that asks again every 100 ms until the server is done.
import { QueryClient, QueryClientProvider, useQuery } from "@tanstack/react-query";
import React, { useState } from "react";
import { createRoot } from "react-dom/client";
import { clicked, start, text, url } from "./common.js";

function Late() {
  const [asked, setAsked] = useState(start === "load");
  const [said, setSaid] = useState("");
  const { data } = useQuery({
    queryKey: ["late"],
    queryFn: async () => (await fetch(url("poll"))).text(),
    enabled: asked,
    refetchInterval: (query) => (query.state.data === "done" ? false : 100),
  });
  const state = data === "done" ? "FINAL" : "initial";
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

createRoot(document.getElementById("app")).render(
  <QueryClientProvider client={new QueryClient()}>
    <Late />
  </QueryClientProvider>,
);
