// With a time limit that the server keeps.
import axios from "axios";
import { delay, plain, show, url } from "./common.js";

plain(() =>
  axios.get(url("late"), { timeout: delay + 1500 }).then(
    () => show("FINAL"),
    () => show("WRONG"),
  ),
);
