// What onnxruntime-node and onnxruntime-web have in common: an ort module -> a runner.

import { serve, Unsupported } from "./protocol.mjs";

// opconform's name of an element type -> that of onnxruntime-common, the typed array that holds it
const TYPES = {
  f32: ["float32", Float32Array],
  f64: ["float64", Float64Array],
  f16: ["float16", globalThis.Float16Array ?? Uint16Array],
  i8: ["int8", Int8Array],
  i16: ["int16", Int16Array],
  i32: ["int32", Int32Array],
  i64: ["int64", BigInt64Array],
  u8: ["uint8", Uint8Array],
  u16: ["uint16", Uint16Array],
  u32: ["uint32", Uint32Array],
  u64: ["uint64", BigUint64Array],
  bool: ["bool", Uint8Array],
  str: ["string", Array],
};
const NAMES = Object.fromEntries(Object.entries(TYPES).map(([ours, [theirs]]) => [theirs, ours]));
const GAPS =
  /NOT_IMPLEMENTED|Could not find an implementation|not a registered function\/op|No Op registered for|only \*guarantees\* support|Unsupported model IR version|under development|unsupported data type|not supported|fallback to CPU EP has been explicitly disabled/i;

/** Words of the runtime -> an error that says whether this is a gap or a refusal. */
function told(e) {
  if (e instanceof WebAssembly.RuntimeError) return e;
  const text = String(e?.message ?? e);
  return GAPS.test(text) ? new Unsupported(text) : new Error(text);
}

export function runner(channel, ort, { name, version, provider, options = {}, claims = {} }) {
  function made(t) {
    const type = TYPES[t.dtype];
    if (!type) throw new Unsupported(`no tensors of type ${t.dtype}`);
    const data = t.dtype === "str" ? t.data : new type[1](t.data.buffer);
    return new ort.Tensor(type[0], data, t.shape);
  }

  const runtime = {
    hello: {
      name,
      version,
      formats: ["onnx"],
      opsets: [7, 26],
      family: "onnxruntime",
      dtypes: Object.keys(TYPES),
      pack: 64,
      info: { engine: globalThis.process?.version ?? navigator.userAgent },
      ...claims,
    },
    async load(bytes) {
      try {
        return await ort.InferenceSession.create(Uint8Array.from(bytes), {
          executionProviders: [provider],
          graphOptimizationLevel: "disabled",
          logSeverityLevel: 4, // what it says of each failure comes with the error
          ...options,
        });
      } catch (e) {
        throw told(e);
      }
    },
    async run(session, feeds) {
      const given = Object.entries(feeds).filter(([, t]) => t !== null);
      let outputs;
      try {
        outputs = await session.run(Object.fromEntries(given.map(([n, t]) => [n, made(t)])));
      } catch (e) {
        throw e instanceof Unsupported ? e : told(e);
      }
      return Object.entries(outputs).map(([n, t]) => {
        if (!NAMES[t.type]) throw new Unsupported(`an output of type ${t.type}`);
        return { name: n, dtype: NAMES[t.type], shape: [...t.dims], data: t.data };
      });
    },
    release: (session) => session?.release(),
  };
  return serve(runtime, channel);
}
