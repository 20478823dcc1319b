// The boundary to the simulator's module: text in, text out. web/wasm/src/lib.rs documents it.

interface Exports {
  memory: WebAssembly.Memory;
  room(which: number, length: number): number;
  answer(): number;
  text(): number;
}

export type Answer = { ok: unknown } | { error: string };

/** One instance of the simulator's module. */
export class Simulator {
  private constructor(private readonly exports: Exports) {}

  static async of(module: WebAssembly.Module): Promise<Simulator> {
    const instance = await WebAssembly.instantiate(module, {});
    return new Simulator(instance.exports as unknown as Exports);
  }

  /** Answers one request. Throws if the module traps: then it can no longer be used. */
  call(request: unknown, file?: Uint8Array): Answer {
    const { memory, room, answer, text } = this.exports;
    const put = (which: number, bytes: Uint8Array) => {
      // Taken anew each time: the memory moves when it grows.
      const at = room(which, bytes.length) >>> 0;
      new Uint8Array(memory.buffer, at, bytes.length).set(bytes);
    };
    put(0, new TextEncoder().encode(JSON.stringify(request)));
    put(1, file ?? new Uint8Array());
    const length = answer() >>> 0;
    return JSON.parse(new TextDecoder().decode(new Uint8Array(memory.buffer, text() >>> 0, length))) as Answer;
  }

  /** Bytes that the module holds; they are never given back. */
  get bytes(): number {
    return this.exports.memory.buffer.byteLength;
  }
}
