// LiteRT.js in a browser: wasm or webgpu.

import { loadAndCompile, loadLiteRt, Tensor } from "/node_modules/@litertjs/core/dist/index.js";
import { serve, Unsupported } from "./protocol.mjs";

const TYPES = { f32: Float32Array, i32: Int32Array, u8: Uint8Array };
const NAMES = { float32: "f32", int32: "i32", uint8: "u8" };

export async function start(channel, provider) {
  await loadLiteRt("/node_modules/@litertjs/core/wasm/");
  const { version } = await (await fetch("/node_modules/@litertjs/core/package.json")).json();

  function made(t) {
    const type = TYPES[t.dtype];
    if (!type) throw new Unsupported(`no tensors of type ${t.dtype}`);
    return new Tensor(new type(t.data.buffer), t.shape);
  }

  async function read(name, given) {
    const t = given.accelerator === "wasm" ? given : await given.moveTo("wasm");
    const { dtype, layout } = t.type;
    const form = { name, dtype: NAMES[dtype], shape: [...layout.dimensions], data: t.toTypedArray().slice() };
    t.delete();
    return form;
  }

  const runtime = {
    hello: {
      name: `litertjs-${provider}`,
      version,
      formats: ["tflite"],
      family: "litert",
      dtypes: Object.keys(TYPES),
      info: { engine: navigator.userAgent },
    },
    load: (bytes) => loadAndCompile(Uint8Array.from(bytes), { accelerator: provider }),
    async run(model, feeds) {
      const inputs = Object.fromEntries(Object.entries(feeds).map(([n, t]) => [n, made(t)]));
      try {
        const outputs = await model.run(inputs);
        return await Promise.all(Object.entries(outputs).map(([n, t]) => read(n, t)));
      } finally {
        for (const t of Object.values(inputs)) if (!t.deleted) t.delete();
      }
    },
    release: (model) => model?.delete(),
  };
  await serve(runtime, channel);
}
