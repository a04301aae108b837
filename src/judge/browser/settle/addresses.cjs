// What the addresses and headers of requests and pages say. They may be gone: then nothing.

"use strict";

const address = url => url.split(/[?#]/, 1)[0];
const origin = page => {
  try {
    return new URL(page.url()).origin;
  } catch {
    // A tab that never loaded has no address.
    return "";
  }
};
const isStream = response => /^text\/event-stream/i.test(response.headers()["content-type"] ?? "");
const isNavigation = (request, page) => {
  try {
    return request.isNavigationRequest() && request.frame() === page.mainFrame();
  } catch {
    return false;
  }
};

module.exports = { address, isNavigation, isStream, origin };
