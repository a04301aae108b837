// Its debounce compares clock readings, besides setting timers.
import { debounce } from "lodash-es";
import { delay, plain, show } from "./common.js";

const finish = debounce(() => show("FINAL"), delay);
plain(() => {
  finish();
  setTimeout(finish, 40);
});
