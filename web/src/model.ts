// What is chosen: everything that a permalink holds, and what the simulator is asked for it.
import { texts } from "./texts";

export interface Recipe {
  about: string;
  duration: string;
  seed: number;
  cellular?: {
    mean: string;
    snr: number;
    snr_limit?: number;
    fading: { sigma: number; lasts: string }[];
    burst: number;
    slot?: string;
    outages?: { every: string; shortest: string; longest: string; exponent: number };
    blockage?: { every: string; lasts: string; loss: number };
    handover?: { every: string; gap: string; sigma: number };
  };
  steps?: { lasts: string; rate: string }[];
}

export type TraceChoice =
  | { kind: "embedded"; name: string }
  | { kind: "generator"; recipe: Recipe }
  | { kind: "drawn"; mbps: number[]; step_s: number }
  /** `direction` as `trace convert --direction` takes it; the largest where there is none. */
  | { kind: "file"; name: string; direction?: string };

export type Source =
  | { kind: "setup" }
  | { kind: "claim"; file: string; id: string }
  | { kind: "text"; text: string };

export interface Choice {
  source: Source;
  trace: TraceChoice;
  schemes: string[];
  rtt_ms: number;
  buffer_pkts: number;
  duration_s: number;
  seed: number;
  runs: number;
  random_offset: boolean;
  flows: number;
  against: string;
  against_flows: number;
  traffic: Record<string, string>;
  loss_percent: number;
  ack_loss_percent: number;
  ack_every: number;
  reverse_mbps: number;
}

/** Numbers with their ranges; sliders and permalinks take the same. */
export const ranges = {
  rtt_ms: [5, 1000],
  buffer_pkts: [4, 5000],
  duration_s: [5, 300],
  seed: [0, 1e9],
  runs: [1, 30],
  flows: [1, 16],
  against_flows: [1, 16],
  loss_percent: [0, 10],
  ack_loss_percent: [0, 50],
  ack_every: [1, 16],
  reverse_mbps: [0.1, 1000],
} as const satisfies Partial<Record<keyof Choice, readonly [number, number]>>;

export type NumberField = keyof typeof ranges;
const whole: readonly NumberField[] = ["buffer_pkts", "seed", "runs", "flows", "against_flows", "ack_every"];

export const usual: Choice = {
  source: { kind: "setup" },
  trace: { kind: "embedded", name: "lte-driving" },
  schemes: ["abc", "cubic", "cubic+codel", "bbr"],
  rtt_ms: 100,
  buffer_pkts: 250,
  duration_s: 60,
  seed: 1,
  runs: 10,
  random_offset: true,
  flows: 1,
  against: "",
  against_flows: 1,
  traffic: { kind: "backlogged" },
  loss_percent: 0,
  ack_loss_percent: 0,
  ack_every: 2,
  reverse_mbps: 12,
};

export const mostSchemes = 30;
export const mostPoints = 2000;

/** What a scenario calls the trace. */
export function traceName(trace: TraceChoice): string {
  switch (trace.kind) {
    case "embedded":
      return trace.name;
    case "generator":
      return "generated";
    case "drawn":
      return "drawn";
    case "file":
      return trace.name;
  }
}

/** A trace that was drawn, as the table of rates that `trace convert` reads. */
export function drawnTable(trace: TraceChoice & { kind: "drawn" }): string {
  const rows = trace.mbps.map((mbps, index) => `${(index * trace.step_s).toFixed(3)},${mbps}`);
  return `start_s,mbps\n${rows.join("\n")}\n${(trace.mbps.length * trace.step_s).toFixed(3)},\n`;
}

/** The simulator's words for what is chosen. */
export function setupOf(choice: Choice, scheme: string): Record<string, unknown> {
  const share = (percent: number) => String(Number((percent / 100).toPrecision(6)));
  const { kind, ...options } = choice.traffic;
  return {
    scheme,
    trace: traceName(choice.trace),
    rtt: `${choice.rtt_ms}ms`,
    buffer: `${choice.buffer_pkts}pkt`,
    duration: `${choice.duration_s}s`,
    trace_offset: choice.random_offset ? "random" : "0s",
    flows: choice.flows,
    against: choice.against || null,
    against_flows: choice.against_flows,
    traffic: kind === "backlogged" ? kind : { kind, ...Object.fromEntries(Object.entries(options).map(option)) },
    elements: choice.loss_percent > 0 ? [`loss:rate=${share(choice.loss_percent)}`] : [],
    ack_elements: choice.ack_loss_percent > 0 ? [`ack-loss:rate=${share(choice.ack_loss_percent)}`] : [],
    ack_every: choice.ack_every,
    reverse_rate: `${choice.reverse_mbps}Mbps`,
  };
}

/** Options are typed as text; the simulator wants numbers, truths and lists as such. */
function option([name, text]: [string, string]): [string, unknown] {
  if (/^-?\d+(\.\d+)?$/.test(text)) return [name, Number(text)];
  if (text === "true" || text === "false") return [name, text === "true"];
  const parts = text.split(",").map((part) => part.trim());
  if (parts.every((part) => part.includes(" "))) return [name, parts.map((part) => part.split(/\s+/))];
  if (parts.length > 1) return [name, parts];
  return [name, text];
}

/** Whether all of it is what `brakelight compare` can be asked for. */
export function isPlain(choice: Choice): boolean {
  const same = (["flows", "against_flows", "loss_percent", "ack_loss_percent", "ack_every"] as const).every(
    (field) => choice[field] === usual[field],
  );
  return same && choice.source.kind === "setup" && choice.traffic.kind === "backlogged";
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value: unknown, most = 200): value is string => typeof value === "string" && value.length <= most;
const isNumber = (value: unknown, low: number, high: number): value is number =>
  typeof value === "number" && Number.isFinite(value) && value >= low && value <= high;

export class BadChoice extends Error {}

/** Reads a choice from outside. Throws [`BadChoice`] with the field that is wrong; a field left out is as usual. */
export function readChoice(given: unknown): Choice {
  if (!isObject(given)) throw new BadChoice(texts.badWhole);
  const choice: Choice = structuredClone(usual);
  for (const field of Object.keys(given)) {
    if (!Object.hasOwn(usual, field)) throw new BadChoice(field.slice(0, 40));
  }
  for (const [field, [low, high]] of Object.entries(ranges) as [NumberField, readonly [number, number]][]) {
    const value = given[field];
    if (value === undefined) continue;
    if (!isNumber(value, low, high) || (whole.includes(field) && !Number.isInteger(value))) throw new BadChoice(field);
    choice[field] = value;
  }
  const { schemes, against, traffic, random_offset, trace, source } = given;
  if (schemes !== undefined) {
    if (!Array.isArray(schemes) || schemes.length > mostSchemes || !schemes.every((scheme) => isText(scheme, 400))) {
      throw new BadChoice("schemes");
    }
    choice.schemes = [...new Set(schemes as string[])];
  }
  if (against !== undefined) {
    if (!isText(against, 400)) throw new BadChoice("against");
    choice.against = against;
  }
  if (random_offset !== undefined) {
    if (typeof random_offset !== "boolean") throw new BadChoice("random_offset");
    choice.random_offset = random_offset;
  }
  if (traffic !== undefined) {
    const entries = isObject(traffic) ? Object.entries(traffic) : [];
    if (!isObject(traffic) || !isText(traffic.kind) || entries.length > 20 || !entries.every(([name, value]) => isText(name) && isText(value))) {
      throw new BadChoice("traffic");
    }
    choice.traffic = Object.fromEntries(entries) as Record<string, string>;
  }
  if (trace !== undefined) choice.trace = readTrace(trace);
  if (source !== undefined) choice.source = readSource(source);
  return choice;
}

function readTrace(given: unknown): TraceChoice {
  if (isObject(given)) {
    const { kind, name, recipe, mbps, step_s, direction } = given;
    if (kind === "embedded" && isText(name, 100)) return { kind, name };
    if (kind === "file" && isText(name, 100) && (direction === undefined || isText(direction, 100))) {
      return direction === undefined ? { kind, name } : { kind, name, direction };
    }
    if (kind === "generator" && isRecipe(recipe)) return { kind, recipe };
    if (
      kind === "drawn" &&
      Array.isArray(mbps) && mbps.length > 0 && mbps.length <= mostPoints && mbps.every((value) => isNumber(value, 0, 10_000)) &&
      isNumber(step_s, 0.01, 60)
    ) {
      return { kind, mbps: mbps as number[], step_s };
    }
  }
  throw new BadChoice("trace");
}

/** Whether it has the shape of a recipe; the simulator checks its values. */
function isRecipe(given: unknown): given is Recipe {
  const list = (value: unknown, is: (each: unknown) => boolean) => Array.isArray(value) && value.length <= 100 && value.every(is);
  const fields = (value: unknown, texts: string[], numbers: string[]) =>
    isObject(value) && texts.every((name) => isText(value[name], 100)) && numbers.every((name) => isNumber(value[name], -1e6, 1e12));
  const maybe = (value: unknown, texts: string[], numbers: string[]) => value === undefined || fields(value, texts, numbers);
  if (!isObject(given) || !isText(given.about, 1000) || !fields(given, ["duration"], ["seed"])) return false;
  const { cellular, steps } = given;
  if (cellular === undefined) return list(steps, (step) => fields(step, ["lasts", "rate"], []));
  return (
    isObject(cellular) && fields(cellular, ["mean"], ["snr", "burst"]) && list(cellular.fading, (each) => fields(each, ["lasts"], ["sigma"])) &&
    maybe(cellular.outages, ["every", "shortest", "longest"], ["exponent"]) && maybe(cellular.blockage, ["every", "lasts"], ["loss"]) &&
    maybe(cellular.handover, ["every", "gap"], ["sigma"])
  );
}

function readSource(given: unknown): Source {
  if (isObject(given)) {
    const { kind, file, id, text } = given;
    if (kind === "setup") return { kind };
    if (kind === "claim" && isText(file, 100) && isText(id, 100)) return { kind, file, id };
    if (kind === "text" && isText(text, 100_000)) return { kind, text };
  }
  throw new BadChoice("source");
}
