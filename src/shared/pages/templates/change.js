// Sends a change as the page itself, and gives what is answered. An error says why nothing was done.
async function sendChange(path, change) {
  const { header, token } = document.body.dataset;
  const headers = { "Content-Type": "application/json", [header]: token };
  const [isDone, value] = await fetch(path, { method: "POST", headers, body: JSON.stringify(change) })
    .then(async (answer) => [answer.ok, await answer.json()])
    .catch(() => { throw new Error("the server does not answer: nothing was saved"); });
  if (!isDone) throw new Error(value.error);
  return value;
}
