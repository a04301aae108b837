// A request, then the library's own fade.
import $ from "jquery";
import { clicked, markup, onLoad, show, url } from "./common.js";

markup();
const begin = () =>
  $.get(url("late")).done(() => {
    $("#first, #second").hide();
    show("FINAL");
    $("#first, #second").fadeIn(200);
  });
$("#start").on("click", begin);
$("#react").on("click", () => $("#said").text(clicked));
onLoad(begin);
