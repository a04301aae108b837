import Vue from "vue2/dist/vue.js";
import { clicked, late, start, text } from "./common.js";

Vue.config.productionTip = Vue.config.devtools = false;
new Vue({
  el: "#app",
  data: { state: "initial", said: "" },
  methods: {
    text,
    async begin() {
      await late();
      this.state = "FINAL";
    },
    react() {
      this.said = clicked;
    },
  },
  mounted() {
    if (start === "load") this.begin();
  },
  template: `<div @click="() => {}"><button @click="begin">Start</button>
    <transition name="fade" mode="out-in"><div :key="state"><p>{{ text("first", state) }}</p>
    <p>{{ text("second", state) }}</p></div></transition>
    <button @click="react">React</button><p>{{ said }}</p></div>`,
});
