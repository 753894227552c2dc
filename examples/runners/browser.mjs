// A runtime in a browser as a runner: Chromium, without a window, opens page.mjs from a local server, and each message
// passes between it and opconform as it is.
//   opconform run --dialect onnx   --backend 'exec:node examples/runners/browser.mjs ort wasm'      (or webgpu, webnn)
//   opconform run --dialect tflite --backend 'exec:node examples/runners/browser.mjs litert wasm'   (or webgpu)
// OPCONFORM_CHROMIUM names the browser where it is not found by one of its usual names.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { encode } from "./protocol.mjs";
import { messages, send } from "./stdio.mjs";

const [runtime = "ort", provider = "wasm"] = process.argv.slice(2);
const HERE = import.meta.dirname ?? new URL(".", import.meta.url).pathname;
const TYPES = { ".mjs": "text/javascript", ".js": "text/javascript", ".wasm": "application/wasm" };
const IMPORTS = { imports: { "@litertjs/wasm-utils": "/node_modules/@litertjs/wasm-utils/dist/index.js" } };
const PAGE = `<!doctype html><title>runner</title><script type="importmap">${JSON.stringify(IMPORTS)}</script>
<script type="module" src="/page.mjs"></script>`;
const FLAGS = [
  "--headless=new",
  "--no-first-run",
  "--disable-extensions",
  "--disable-background-networking",
  "--enable-unsafe-webgpu",
  "--use-webgpu-adapter=swiftshader",
  "--enable-features=WebMachineLearningNeuralNetwork",
  ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []), // Chromium's sandbox does not start as root
];

function browser() {
  const names = [process.env.OPCONFORM_CHROMIUM, "chromium", "chromium-browser", "google-chrome", "chrome"].filter(
    Boolean,
  );
  const found = names.find((name) => spawnSync(name, ["--version"], { stdio: "ignore" }).status === 0);
  if (found) return found;
  console.error(
    `browser.mjs: expected Chromium under one of the names ${names.join(", ")}, found none; set OPCONFORM_CHROMIUM`,
  );
  process.exit(2);
}

let child;
let ending = false;

/** End the browser and all that it started, remove its profile, end. */
function end(code, message) {
  if (ending) return;
  ending = true;
  if (message) console.error(`browser.mjs: ${message}`);
  child.once("exit", () => {
    rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
    process.exit(code);
  });
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    child.emit("exit"); // it ended before
  }
}

const requests = messages();

/** The page's last answer -> the next request; the first exchange brings no answer. */
async function exchange(answer) {
  if (answer.length) send(answer);
  const { value, done } = await requests.next();
  if (!done) return encode(value.header, [value.payload]);
  end(0);
}

async function body(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
}

const server = createServer(async (request, response) => {
  const path = new URL(request.url, "http://localhost").pathname;
  if (path === "/") response.writeHead(200, { "content-type": "text/html" }).end(PAGE);
  else if (path === "/exchange") response.end(await exchange(await body(request)));
  else if (path === "/crashed") end(1, await body(request));
  else if (path === "/alive") request.socket.on("close", () => end(1, "the page is gone"));
  else {
    try {
      const data = readFileSync(join(HERE, normalize(path)));
      response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "application/octet-stream" }).end(data);
    } catch {
      response.writeHead(404).end();
    }
  }
});

const profile = mkdtempSync(join(tmpdir(), "opconform-browser-"));
server.listen(0, "127.0.0.1", () => {
  const page = `http://127.0.0.1:${server.address().port}/?runtime=${runtime}&provider=${provider}`;
  const options = { stdio: ["ignore", 2, 2], detached: true }; // a process group, so that all of it can be ended
  child = spawn(browser(), [...FLAGS, `--user-data-dir=${profile}`, page], options);
  child.on("exit", (code, signal) => end(1, `the browser ended with ${signal ?? code}`));
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => end(1));
