// Read an ort-jsonc pack with ONNX Runtime Web under Node:  node examples/packs/run_jsonc.mjs PACK
// Models are made with the protobuf classes that onnxruntime-web brings, as js/web/test/test-runner.ts makes them, and
// results are compared with that runner's thresholds for the backend wasm.  Prints {name of the test: what came of it}.
// First:  npm ci --ignore-scripts --prefix examples/runners

import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const WEB = new URL("../runners/node_modules/onnxruntime-web/", import.meta.url);
const ort = await import(new URL("dist/ort.node.min.mjs", WEB));
const { onnx } = createRequire(import.meta.url)(new URL("lib/onnxjs/ort-schema/protobuf/onnx.js", WEB).pathname);
const [ABSOLUTE, RELATIVE] = [1e-4, 1.000001];
const KINDS = { float: "f", int: "i", string: "s", floats: "floats", ints: "ints", strings: "strings" };
const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
};
const NUMBERS = onnx.TensorProto.DataType;
const NAMES = { float32: "FLOAT", float64: "DOUBLE", float16: "FLOAT16" };

function value(name, { type }) {
  const elemType = NUMBERS[NAMES[type] ?? type.toUpperCase()];
  return { name, type: { tensorType: { elemType } } };
}

function attribute({ name, type, data }) {
  const text = new TextEncoder();
  const held = type === "string" ? text.encode(data) : type === "strings" ? data.map((s) => text.encode(s)) : data;
  return { name, type: onnx.AttributeProto.AttributeType[type.toUpperCase()], [KINDS[type]]: held };
}

/** A model of one node, whose inputs and outputs have types and no shapes. */
function model({ operator, opset, attributes = [], cases: [first] }) {
  const node = {
    opType: operator,
    domain: opset.domain,
    input: first.inputs.map((_, i) => `input_${i}`),
    output: first.outputs.map((_, i) => `output_${i}`),
    attribute: attributes.map(attribute),
  };
  const graph = {
    name: "test",
    node: [node],
    input: first.inputs.map((x, i) => value(`input_${i}`, x)),
    output: first.outputs.map((x, i) => value(`output_${i}`, x)),
  };
  const made = { irVersion: 10, opsetImport: [{ domain: opset.domain, version: opset.version }], graph };
  return onnx.ModelProto.encode(onnx.ModelProto.fromObject(made)).finish();
}

function tensor({ type, dims, data }) {
  if (type === "string") return new ort.Tensor("string", data, dims);
  if (type === "bool") return new ort.Tensor("bool", data.map(Boolean), dims);
  if (!ARRAYS[type]) throw new Error(`no tensors of type ${type}`);
  const big = type === "int64" || type === "uint64";
  return new ort.Tensor(type, ARRAYS[type].from(big ? data.map(BigInt) : data), dims);
}

/** The runner's comparison of two numbers. */
function near(a, b) {
  if (a === b || (Number.isNaN(a) && Number.isNaN(b)) || Math.abs(a - b) < ABSOLUTE) return true;
  return a !== 0 && b !== 0 && a / b < RELATIVE && b / a < RELATIVE;
}

function equal(actual, expected) {
  if (actual.type !== expected.type || String(actual.dims) !== String(expected.dims)) return false;
  const same = expected.type.startsWith("float") ? near : (a, b) => a === b;
  return [...expected.data].every((x, i) => same(actual.data[i], x));
}

/** "passed", "failed", or why the runtime has no answer. */
async function run(test) {
  try {
    const session = await ort.InferenceSession.create(model(test), {
      graphOptimizationLevel: "disabled",
      logSeverityLevel: 4,
    });
    for (const { inputs, outputs } of test.cases) {
      const got = await session.run(Object.fromEntries(inputs.map((x, i) => [`input_${i}`, tensor(x)])));
      if (!outputs.every((x, i) => equal(got[`output_${i}`], tensor(x)))) return "failed";
    }
    return "passed";
  } catch (e) {
    return String(e?.message ?? e);
  }
}

const folder = join(process.argv[2], "ops");
const found = {};
for (const file of readdirSync(folder).sort()) {
  const lines = readFileSync(join(folder, file), "utf8").split("\n");
  const tests = JSON.parse(lines.filter((line) => !line.startsWith("//")).join("\n"));
  for (const test of tests) found[test.name] = await run(test);
}
process.stdout.write(`${JSON.stringify(found, undefined, 1)}\n`);
