// The channel of a runner under Node: messages over stdin and stdout.

import { writeSync } from "node:fs";
import { decode } from "./protocol.mjs";

export async function* messages() {
  let data = Buffer.alloc(0);
  for await (const chunk of process.stdin) {
    data = data.length ? Buffer.concat([data, chunk]) : chunk;
    for (let m = decode(data); m; m = decode(data)) {
      data = data.subarray(m.size);
      yield m;
    }
  }
}

export function send(data) {
  for (let at = 0; at < data.length; ) {
    try {
      at += writeSync(1, data, at);
    } catch (e) {
      if (e.code !== "EAGAIN") throw e; // the pipe is full: its reader comes
    }
  }
}
