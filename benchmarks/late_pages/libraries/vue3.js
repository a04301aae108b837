import { createApp } from "vue/dist/vue.esm-bundler.js";
import { clicked, late, start, text } from "./common.js";

createApp({
  data: () => ({ asked: start === "load", state: "initial", said: "" }),
  watch: {
    asked: {
      immediate: true,
      async handler(asked) {
        if (!asked) return;
        await late();
        this.state = "FINAL";
      },
    },
  },
  methods: {
    text,
    react() {
      this.said = clicked;
    },
  },
  template: `<button @click="asked = true">Start</button>
    <Transition name="fade" mode="out-in"><div :key="state"><p>{{ text("first", state) }}</p>
    <p>{{ text("second", state) }}</p></div></Transition>
    <button @click="react">React</button><p>{{ said }}</p>`,
}).mount("#app");
