// ONNX Runtime for Node as a runner:  npm install --ignore-scripts onnxruntime-node
//   opconform run --dialect onnx --backend 'exec:node examples/runners/ort_node.mjs'

import ort from "onnxruntime-node";
import { runner } from "./ort.mjs";
import * as stdio from "./stdio.mjs";

await runner(stdio, ort, {
  name: "onnxruntime-node",
  version: ort.env.versions.node,
  provider: "cpu",
  options: { intraOpNumThreads: 1, interOpNumThreads: 1 },
});
