// The page that browser.mjs opens: it fetches each request, runs it on the runtime of its address, and posts the answer.

import { decode } from "./protocol.mjs";

const post = (path, body) => fetch(path, { method: "POST", body });
let last = new Uint8Array();
const channel = {
  async *messages() {
    for (;;) yield decode(new Uint8Array(await (await post("/exchange", last)).arrayBuffer()));
  },
  send(bytes) {
    last = bytes;
  },
};

const { runtime, provider } = Object.fromEntries(new URLSearchParams(location.search));
fetch("/alive").catch(() => {}); // ends when the page does
try {
  const { start } = await import(`./browser_${runtime}.mjs`);
  await start(channel, provider);
} catch (e) {
  await post("/crashed", String(e?.stack ?? e));
}
