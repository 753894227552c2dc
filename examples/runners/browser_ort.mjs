// ONNX Runtime Web in a browser: wasm, webgpu or webnn.

import * as ort from "/node_modules/onnxruntime-web/dist/ort.all.min.mjs";
import { runner } from "./ort.mjs";

export async function start(channel, provider) {
  ort.env.wasm.numThreads = 1;
  if (provider === "webgpu" && !(await navigator.gpu?.requestAdapter())) throw new Error("no WebGPU adapter here");
  if (provider === "webnn" && !navigator.ml) throw new Error("no WebNN here");
  // what the provider does not take must not run on the CPU under its name
  const options = provider === "wasm" ? {} : { extra: { session: { disable_cpu_ep_fallback: "1" } } };
  const name = `onnxruntime-web-browser-${provider}`;
  await runner(channel, ort, { name, version: ort.env.versions.web, provider, options });
}
