// Everything in a shadow root.
import { html, LitElement } from "lit";
import { clicked, late, start, text } from "./common.js";

class LateContent extends LitElement {
  static properties = { state: {}, said: {} };

  constructor() {
    super();
    this.state = "initial";
    this.said = "";
  }

  connectedCallback() {
    super.connectedCallback();
    if (start === "load") this.begin();
  }

  async begin() {
    await late();
    this.state = "FINAL";
  }

  render() {
    return html`<button @click=${this.begin}>Start</button>
      <p>${text("first", this.state)}</p>
      <p>${text("second", this.state)}</p>
      <button @click=${() => (this.said = clicked)}>React</button>
      <p>${this.said}</p>`;
  }
}

customElements.define("late-content", LateContent);
document.getElementById("app").append(document.createElement("late-content"));
