import { io } from "socket.io-client";
import { delay, plain, show } from "./common.js";

const socket = io({ transports: ["websocket"] });
socket.on("done", () => show("FINAL"));
plain(() => socket.emit("late", delay));
