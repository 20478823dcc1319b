// node run.mjs MODULE.wasm FOLDER: the outcome of every scenario NAME.toml there, as NAME.json beside it.
import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

const [file, folder] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(await readFile(file));
const { memory, room, answer, text } = instance.exports;

function ask(request) {
  const bytes = new TextEncoder().encode(JSON.stringify(request));
  const place = room(0, bytes.length) >>> 0;
  // Taken anew each time: the memory moves when it grows.
  new Uint8Array(memory.buffer, place, bytes.length).set(bytes);
  const length = answer() >>> 0;
  const reply = JSON.parse(new TextDecoder().decode(new Uint8Array(memory.buffer, text() >>> 0, length)));
  if ("error" in reply) throw new Error(reply.error);
  return reply.ok;
}

for (const name of (await readdir(folder)).filter((name) => name.endsWith(".toml")).sort()) {
  ask({ do: "begin", what: { text: await readFile(join(folder, name), "utf8") }, series: true });
  // In steps, as a page does it.
  while (!ask({ do: "advance", seconds: 0.7 }).done);
  await writeFile(join(folder, name.replace(/toml$/, "json")), ask({ do: "finish" }).outcome);
}
