// The runner protocol for JavaScript, as docs/runner-protocol.md describes it, in Node and in browsers alike.
// A message is the byte 0x1E, one line of JSON, and as many bytes as its "payload" says.  stdio.mjs carries the messages
// of a runner under Node, page.mjs those of one in a browser.

/** What a runner throws for what its runtime does not take: a declared gap, no failure. */
export class Unsupported extends Error {}

const START = 0x1e;
const NEWLINE = 0x0a;

/** The first message of some bytes -> {header, payload, size}; undefined if it is not whole. */
export function decode(bytes) {
  const end = bytes.indexOf(NEWLINE);
  if (end < 0) return undefined;
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(1, end)));
  const size = end + 1 + (header.payload ?? 0);
  return bytes.length < size ? undefined : { header, payload: bytes.subarray(end + 1, size), size };
}

/** A message -> its bytes. */
export function encode(header, parts = []) {
  const payload = parts.reduce((sum, p) => sum + p.length, 0);
  const line = new TextEncoder().encode(`${JSON.stringify(payload ? { ...header, payload } : header)}\n`);
  const bytes = new Uint8Array(1 + line.length + payload);
  bytes[0] = START;
  bytes.set(line, 1);
  let at = 1 + line.length;
  for (const p of parts) {
    bytes.set(p, at);
    at += p.length;
  }
  return bytes;
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
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    parts.push(bytes);
    offset += bytes.length;
    return { ...form, offset: offset - bytes.length, bytes: bytes.length };
  });
  return [{ outputs: forms }, parts];
}

/** Serve a runtime: hello is an object; load(bytes, format) gives a model; run(model, feeds) gives its outputs, feeds
 * being {name: tensor or null}; release(model) is optional.  The channel has messages(), which yields {header, payload},
 * and send(bytes). */
export async function serve({ hello, load, run, release }, channel) {
  console.log = console.info = console.error; // the runtime's own words do not belong on stdout
  const models = new Map();
  for await (const { header, payload } of channel.messages()) {
    const { id, method, model } = header;
    try {
      if (method === "hello") await channel.send(encode({ id, result: hello }));
      else if (method === "load") {
        models.set(model, await load(payload, header.format));
        await channel.send(encode({ id, result: {} }));
      } else if (method === "run") {
        const feeds = Object.fromEntries(header.inputs.map((x) => [x.name, tensor(x, payload)]));
        const [result, parts] = answer(await run(models.get(model), feeds));
        await channel.send(encode({ id, result }, parts));
      } else if (method === "release") {
        await release?.(models.get(model));
        models.delete(model);
        await channel.send(encode({ id, result: {} }));
      } else throw new Unsupported(`method ${method}`);
    } catch (e) {
      if (e instanceof WebAssembly.RuntimeError) throw e; // nothing works after it: the runner ends, as after a crash
      const kind = e instanceof Unsupported ? "unsupported" : "rejected";
      await channel.send(encode({ id, error: { kind, message: String(e?.message ?? e) } }));
    }
  }
}
