// A timeline that ends in the final state.
import { gsap } from "gsap";
import { delay, plain, show } from "./common.js";

const at = plain(() => {
  gsap
    .timeline({ onComplete: () => show("FINAL") })
    .fromTo(at("first"), { x: 0 }, { x: 200, duration: delay / 2000 })
    .to(at("first"), { x: 0, duration: delay / 2000 });
});
