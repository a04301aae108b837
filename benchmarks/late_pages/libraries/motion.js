import { animate } from "motion";
import { delay, plain, show } from "./common.js";

const at = plain(async () => {
  await animate(at("first"), { x: [0, 200, 0] }, { duration: delay / 1000 });
  show("FINAL");
});
