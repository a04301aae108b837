// Written to a database and read back after the delay.
import { get, set } from "idb-keyval";
import { delay, pause, plain, show, token } from "./common.js";

plain(async () => {
  await set(token, "FINAL");
  await pause(delay);
  show(await get(token));
});
