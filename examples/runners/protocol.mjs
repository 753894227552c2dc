// The runner protocol for JavaScript: messages over stdin and stdout, as docs/runner-protocol.md describes them.
// A message is the byte 0x1E, one line of JSON, and as many bytes as its "payload" says.

import { writeSync } from "node:fs";

/** What a runner throws for what its runtime does not take: a declared gap, no failure. */
export class Unsupported extends Error {}

const START = 0x1e;
const NEWLINE = 0x0a;

/** Yields {header, payload} for each message on stdin. */
async function* messages() {
  let data = Buffer.alloc(0);
  for await (const chunk of process.stdin) {
    data = data.length ? Buffer.concat([data, chunk]) : chunk;
    for (;;) {
      const end = data.indexOf(NEWLINE);
      if (end < 0) break;
      const header = JSON.parse(data.toString("utf8", 1, end));
      const size = header.payload ?? 0;
      if (data.length < end + 1 + size) break;
      yield { header, payload: data.subarray(end + 1, end + 1 + size) };
      data = data.subarray(end + 1 + size);
    }
  }
}

function send(header, parts = []) {
  const payload = parts.reduce((sum, p) => sum + p.length, 0);
  const text = JSON.stringify(payload ? { ...header, payload } : header);
  const data = Buffer.concat([Buffer.of(START), Buffer.from(text), Buffer.of(NEWLINE), ...parts]);
  for (let at = 0; at < data.length; ) {
    try {
      at += writeSync(1, data, at);
    } catch (e) {
      if (e.code !== "EAGAIN") throw e; // the pipe is full: its reader comes
    }
  }
}

/** One tensor of a message -> {dtype, shape, data}: its bytes, from an address that any typed array may start at. */
export function tensor(form, payload) {
  if (form.sequence || form.map) throw new Unsupported("this sample takes tensors only");
  if (form.absent) return null;
  const data = form.strings ?? Uint8Array.from(payload.subarray(form.offset, form.offset + form.bytes));
  return { dtype: form.dtype, shape: form.shape, data };
}

/** {name, dtype, shape, data} of each output -> the result of run and the parts of its payload. */
function answer(outputs) {
  const parts = [];
  let offset = 0;
  const forms = outputs.map(({ data, ...form }) => {
    if (form.dtype === "str") return { ...form, strings: data };
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    parts.push(bytes);
    offset += bytes.length;
    return { ...form, offset: offset - bytes.length, bytes: bytes.length };
  });
  return [{ outputs: forms }, parts];
}

/** Serve a runtime: hello is an object; load(bytes, format) gives a model; run(model, feeds) gives its outputs, feeds
 * being {name: tensor or null}; release(model) is optional. */
export async function serve({ hello, load, run, release }) {
  console.log = console.info = console.error; // the runtime's own words do not belong on stdout
  const models = new Map();
  for await (const { header, payload } of messages()) {
    const { id, method, model } = header;
    try {
      if (method === "hello") send({ id, result: hello });
      else if (method === "load") {
        models.set(model, await load(payload, header.format));
        send({ id, result: {} });
      } else if (method === "run") {
        const feeds = Object.fromEntries(header.inputs.map((x) => [x.name, tensor(x, payload)]));
        const [result, parts] = answer(await run(models.get(model), feeds));
        send({ id, result }, parts);
      } else if (method === "release") {
        await release?.(models.get(model));
        models.delete(model);
        send({ id, result: {} });
      } else throw new Unsupported(`method ${method}`);
    } catch (e) {
      const kind = e instanceof Unsupported ? "unsupported" : "rejected";
      send({ id, error: { kind, message: String(e?.message ?? e) } });
    }
  }
}
