onmessage = (event) => setTimeout(() => postMessage("done"), event.data);
