// A worker: one simulator. Runs go on in slices, so that one that is no longer wanted ends early.
import { Simulator, type Answer } from "./module";
import type { FromWorker, ToWorker } from "./protocol";

/** How long a slice of a run should take, ms. */
const SLICE_MS = 25;
/** Above this the module is made anew after a run: its memory never shrinks. */
const MOST_BYTES = 300e6;

/** The page sends the module as soon as it is compiled, maybe after the first requests. */
let take: (module: WebAssembly.Module) => void;
const module = new Promise<WebAssembly.Module>((resolve) => { take = resolve; });
let simulator: Promise<Simulator> | undefined;
/** What a new instance must be told first. */
const traces = new Map<string, { request: unknown; file?: Uint8Array }>();
const cancelled = new Set<number>();

const send = (message: FromWorker) => postMessage(message);
const pause = (() => {
  const channel = new MessageChannel();
  let resume: (() => void) | undefined;
  channel.port1.onmessage = () => resume?.();
  return () => new Promise<void>((done) => { resume = done; channel.port2.postMessage(0); });
})();

function instance(): Promise<Simulator> {
  simulator ??= module.then((compiled) => Simulator.of(compiled)).then((fresh) => {
    for (const { request, file } of traces.values()) fresh.call(request, file);
    return fresh;
  });
  return simulator;
}

/** The simulator's own answer that something is wrong with a request; after any other error it is made anew. */
class Refused extends Error {}

function value(answer: Answer): unknown {
  if ("error" in answer) throw new Refused(answer.error);
  return answer.ok;
}

interface State { now_s: number; end_s: number; done: boolean }

async function run(id: number, request: Record<string, unknown>): Promise<unknown> {
  const simulator_ = await instance();
  const began = performance.now();
  let state = value(simulator_.call({ do: "begin", ...request })) as State;
  let step = 0.25;
  let reported = began;
  while (!state.done) {
    const before = performance.now();
    state = value(simulator_.call({ do: "advance", seconds: step })) as State;
    const took = Math.max(performance.now() - before, 0.05);
    step = Math.min(Math.max(step * Math.min(SLICE_MS / took, 4), 1e-4), 3600);
    if (performance.now() - reported > 100) {
      reported = performance.now();
      send({ id, progress: state.end_s > 0 ? state.now_s / state.end_s : 1 });
    }
    if (!state.done) {
      await pause();
      if (cancelled.delete(id)) return undefined;
    }
  }
  const result = value(simulator_.call({ do: "finish" })) as Record<string, unknown>;
  result.took_ms = performance.now() - began;
  if (simulator_.bytes > MOST_BYTES) simulator = undefined;
  return result;
}

self.onmessage = async (event: MessageEvent<ToWorker>) => {
  const message = event.data;
  if ("module" in message) {
    take(message.module);
    // The first request finds it ready, or is told why not.
    instance().catch(() => { simulator = undefined; });
    return;
  }
  if ("cancel" in message) {
    cancelled.add(message.cancel);
    return;
  }
  const { id, request, file } = message;
  try {
    if (request.do === "run") {
      const { do: _, ...rest } = request;
      send({ id, answer: await run(id, rest) });
    } else {
      const answer = value((await instance()).call(request, file));
      if (request.do === "trace-file" || request.do === "trace-recipe") {
        traces.delete(request.name as string);
        traces.set(request.name as string, { request, file });
        // As many as the module keeps.
        if (traces.size > 16) traces.delete(traces.keys().next().value as string);
      }
      send({ id, answer });
    }
  } catch (error) {
    if (!(error instanceof Refused)) simulator = undefined;
    // Either the module was short of memory, or the browser for it.
    const trap = error instanceof WebAssembly.RuntimeError || error instanceof RangeError;
    send({ id, error: error instanceof Error ? error.message : String(error), trap });
  } finally {
    cancelled.delete(id);
  }
};
