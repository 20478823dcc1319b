// node run.mjs MODULE.wasm SCENARIO.toml: the outcome as JSON. In a browser the same lines work with `fetch`.
import { readFile } from "node:fs/promises";

const [file, scenario] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(await readFile(file));
const { memory, room, simulate, text } = instance.exports;

const input = await readFile(scenario);
const place = room(input.length);
// Taken anew each time: the memory moves when it grows.
new Uint8Array(memory.buffer, place, input.length).set(input);
const length = simulate();
const output = new Uint8Array(memory.buffer, text(), Math.abs(length));
if (length < 0) {
  console.error(new TextDecoder().decode(output));
  process.exit(1);
}
process.stdout.write(output);
