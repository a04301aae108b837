import { mount } from "svelte";
import Late from "./Late.svelte";

mount(Late, { target: document.getElementById("app") });
