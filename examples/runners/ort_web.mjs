// ONNX Runtime Web's WebAssembly under Node as a runner:  npm install --ignore-scripts onnxruntime-web
//   opconform run --dialect onnx --backend 'exec:node examples/runners/ort_web.mjs'

import ort from "onnxruntime-web";
import { runner } from "./ort.mjs";
import * as stdio from "./stdio.mjs";

ort.env.wasm.numThreads = 1;

await runner(stdio, ort, { name: "onnxruntime-web", version: ort.env.versions.web, provider: "wasm" });
