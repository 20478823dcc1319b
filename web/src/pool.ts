// Workers: one per core for runs, and one more for everything that must answer at once.
import type { FromWorker, Request, ToWorker } from "./protocol";
import { texts } from "./texts";
import SimulatorWorker from "./worker?worker&inline";

/** A run may take this long before its worker is ended, ms. */
const RUN_BUDGET_MS = 60_000;
/** Any other request may take this long, ms. */
const CALL_BUDGET_MS = 15_000;

declare global {
  interface Window {
    brakelightModule?: string;
  }
}

/** Loads the module, a script since files cannot be fetched from a folder, and compiles it while it is unpacked. */
export async function compileModule(): Promise<WebAssembly.Module> {
  await new Promise((loaded, failed) => {
    const script = document.createElement("script");
    script.src = "module.js";
    script.onload = loaded;
    script.onerror = () => failed(new Error(texts.noModule));
    document.head.append(script);
  });
  const base64 = window.brakelightModule;
  if (!base64) throw new Error(texts.noModule);
  delete window.brakelightModule;
  const letters = atob(base64);
  const packed = new Uint8Array(letters.length);
  for (let at = 0; at < packed.length; at++) packed[at] = letters.charCodeAt(at);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compileStreaming(new Response(stream, { headers: { "content-type": "application/wasm" } }));
}

interface Task {
  id: number;
  request: Request;
  file?: Uint8Array;
  /** Runs whose group is cancelled are dropped. */
  group: number;
  done(answer: unknown): void;
  failed(error: Error): void;
}

class Place {
  worker: Worker | undefined;
  task: Task | undefined;
  timer = 0;
}

export class Cancelled extends Error {}

/** Requests to the simulator, each answered by a worker that is free. */
export class Pool {
  private readonly places: Place[];
  private readonly queue: Task[] = [];
  private readonly traces = new Map<string, { request: Request; file?: Uint8Array }>();
  private next = 1;

  /** The workers of the first `ready` places are begun at once: their scripts start while the module is compiled. */
  constructor(private readonly module: Promise<WebAssembly.Module>, size: number, ready: number) {
    this.places = Array.from({ length: size }, () => new Place());
    for (const place of this.places.slice(0, ready)) this.start(place);
  }

  /** Asks for an answer. Requests are begun in the order in which they come. */
  ask<T>(request: Request, group = 0, file?: Uint8Array): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const done = resolve as (answer: unknown) => void;
      this.queue.push({ id: this.next++, request, file, group, done, failed: reject });
      this.begin();
    });
  }

  /** Tells every worker of a trace, those that are begun later too. Returns the answer of one of them. */
  async keepTrace<T>(request: Request, file?: Uint8Array): Promise<T> {
    const answer = await this.ask<T>(request, 0, file);
    const name = String(request.name);
    this.traces.delete(name);
    this.traces.set(name, { request, file });
    if (this.traces.size > 16) this.traces.delete(this.traces.keys().next().value as string);
    for (const place of this.places) this.tell(place, { id: 0, request, file });
    return answer;
  }

  /** Drops everything of a group: what waits, and what runs as soon as its worker hears of it. */
  cancel(group: number): void {
    const waiting = this.queue.filter((task) => task.group === group);
    for (const task of waiting) {
      this.queue.splice(this.queue.indexOf(task), 1);
      task.failed(new Cancelled());
    }
    for (const place of this.places) {
      if (place.task?.group === group) this.tell(place, { cancel: place.task.id });
    }
  }

  private tell(place: Place, message: ToWorker): void {
    place.worker?.postMessage(message);
  }

  private begin(): void {
    for (const place of this.places) {
      if (place.task) continue;
      const task = this.queue.shift();
      if (!task) return;
      place.task = task;
      this.start(place);
      this.tell(place, { id: task.id, request: task.request, file: task.file });
      const budget = task.request.do === "run" ? RUN_BUDGET_MS : CALL_BUDGET_MS;
      place.timer = window.setTimeout(() => this.end(place, texts.tooLong(budget / 1000)), budget);
    }
  }

  private start(place: Place): void {
    if (place.worker) return;
    const worker = new SimulatorWorker();
    place.worker = worker;
    worker.onmessage = (event: MessageEvent<FromWorker>) => this.heard(place, event.data);
    worker.onerror = (event) => {
      event.preventDefault();
      this.end(place, texts.workerFailed);
    };
    this.module.then(
      (module) => worker.postMessage({ module } satisfies ToWorker),
      (error: Error) => place.worker === worker && this.end(place, error.message),
    );
    for (const { request, file } of this.traces.values()) this.tell(place, { id: 0, request, file });
  }

  private heard(place: Place, message: FromWorker): void {
    const task = place.task;
    if (!task || message.id !== task.id || "progress" in message) return;
    window.clearTimeout(place.timer);
    place.task = undefined;
    if ("error" in message) {
      task.failed(new Error(message.trap ? texts.trapped : message.error));
    } else if (message.answer === undefined) {
      task.failed(new Cancelled());
    } else {
      task.done(message.answer);
    }
    this.begin();
  }

  /** Ends a worker that answers no more; the next task gets a fresh one. */
  private end(place: Place, why: string): void {
    window.clearTimeout(place.timer);
    place.worker?.terminate();
    place.worker = undefined;
    const task = place.task;
    place.task = undefined;
    task?.failed(new Error(why));
    this.begin();
  }
}
