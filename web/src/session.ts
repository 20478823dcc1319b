// Runs what is chosen: first the beginning of every run, so that something is there at once, then the whole,
// then the other seeds.
import { drawnTable, setupOf, traceName, type Choice } from "./model";
import { Cancelled, Pool, compileModule } from "./pool";
import type { Decision, Finished, Row, Run } from "./results";
import { texts } from "./texts";

/** A first look runs so many seconds of a scenario. */
const DRAFT_S = 6;

export interface Shown {
  name: string; duration_s: number; mean_mbps: number; cv_100ms: number; longest_gap_ms: number;
  bin_s: number; mbps: number[]; notes?: string[]; format?: string; recipe?: string;
  /** Of a file with several directions: each with its bytes, and which one was taken. */
  directions?: [string, number][]; direction?: string;
}

export interface Parameter { name: string; meaning: string; unit: string; default: string; range: string; source: string }
export interface Entry { name: string; aliases: string[]; summary: string; parameters: Parameter[] }
export interface SchemeEntry { scheme: string; controller: string; feedback: string; queue: string; host: string }
export interface TraceEntry { name: string; about: string; mean_mbps: number; cv_100ms: number; duration_s: number }
export interface Registry {
  version: string; schemes: SchemeEntry[]; controllers: Entry[]; queues: Entry[]; feedbacks: Entry[]; elements: Entry[];
  applications: Entry[]; traces: TraceEntry[]; recipes: Record<string, import("./model").Recipe>;
}

export interface Variant { label: string; what: unknown }
export interface Opened { variants: Variant[]; title?: string; note?: string; stand_ins?: [string, string][] }

interface Experiment {
  title: string; note: string; scenarios: { label: string; toml: string }[]; stand_ins: [string, string][];
}

/** The simulator, and what was last asked of it. */
export class Session {
  private group = 0;
  private rows: Row[] = [];
  /** The trace that the workers were told of last. */
  private told: { key: string; file: Uint8Array | undefined; shown: Promise<Shown> } | undefined;

  private constructor(
    /** Runs. */
    private readonly runs: Pool,
    /** What must answer at once: traces, scenarios, the run that is watched. */
    readonly desk: Pool,
  ) {}

  static start(): Session {
    const module = compileModule();
    const cores = Math.min(Math.max(navigator.hardwareConcurrency || 2, 1), 8);
    return new Session(new Pool(module, cores, Math.min(cores, 2)), new Pool(module, 1, 0));
  }

  /** Makes the trace known to all workers, and says what it is like. One that they know already is not told again. */
  trace(trace: Choice["trace"], file?: Uint8Array): Promise<Shown> {
    const key = JSON.stringify(trace);
    if (this.told?.key !== key || this.told.file !== file) {
      const told = { key, file, shown: this.tell(trace, file) };
      this.told = told;
      told.shown.catch(() => { if (this.told === told) this.told = undefined; });
    }
    return this.told!.shown;
  }

  private async tell(trace: Choice["trace"], file?: Uint8Array): Promise<Shown> {
    const name = traceName(trace);
    if (trace.kind === "embedded" || (trace.kind === "file" && !file)) return this.desk.ask({ do: "trace-show", name });
    const request =
      trace.kind === "generator"
        ? { do: "trace-recipe", name, recipe: trace.recipe }
        : { do: "trace-file", name, ...(trace.kind === "drawn" ? { format: "csv" } : { direction: trace.direction }) };
    const bytes = trace.kind === "drawn" ? new TextEncoder().encode(drawnTable(trace)) : file;
    const shown = await this.desk.keepTrace<Shown>(request, bytes);
    await this.runs.keepTrace(request, bytes);
    return shown;
  }

  /** What must be run for a choice. */
  async open(choice: Choice): Promise<Opened> {
    const { source } = choice;
    if (source.kind === "text") return { variants: [{ label: texts.setup.scenario, what: { text: source.text } }] };
    if (source.kind === "claim") {
      const { scenarios, ...about } = await this.desk.ask<Experiment>({ do: "experiment", file: source.file });
      return { ...about, variants: scenarios.map(({ label, toml }) => ({ label, what: { text: toml } })) };
    }
    return { variants: choice.schemes.map((scheme) => ({ label: scheme, what: { setup: setupOf(choice, scheme) } })) };
  }

  /** Returns the scenario as the text of a file. */
  async toml(what: unknown): Promise<string> {
    return (await this.desk.ask<{ toml: string }>({ do: "scenario", what })).toml;
  }

  /** Returns what to deploy of the schemes in `rows`; `null` where there is nothing to choose from. */
  decide(rows: Row[]): Promise<Decision | null> {
    const schemes = rows.flatMap(({ label, run, cloud }) => (run ? [{ scheme: label, runs: [run, ...cloud] }] : []));
    return this.desk.ask<Decision | null>({ do: "decide", schemes });
  }

  /** Runs everything anew, and calls `changed` whenever there is something to show. */
  async run(choice: Choice, opened: Opened, changed: (rows: Row[], working: boolean) => void): Promise<void> {
    this.runs.cancel(this.group);
    const group = ++this.group;
    // What was shown before stays until there is something newer.
    const before = new Map(this.rows.map((row) => [row.label, row]));
    const rows: Row[] = opened.variants.map(({ label }, index) => {
      const { run, series } = before.get(label) ?? {};
      return { label, index, run, series, cloud: [], draft: true, old: run !== undefined };
    });
    this.rows = rows;
    const isSetup = choice.source.kind === "setup";
    const seed = isSetup ? { seed: choice.seed } : {};
    let left = 0;
    const now = () => group === this.group && changed(rows.map((row) => ({ ...row, cloud: [...row.cloud] })), left > 0);
    // At most once a frame: hundreds of short runs may end in a second.
    let frame = 0;
    const show = () => { frame ||= requestAnimationFrame(() => { frame = 0; now(); }); };
    const one = async (row: Row, what: unknown, request: Record<string, unknown>, take: (finished: Finished) => void) => {
      left++;
      try {
        const finished = await this.runs.ask<Finished>({ do: "run", what, ...request }, group);
        if (group === this.group) take(finished);
      } catch (error) {
        if (!(error instanceof Cancelled)) {
          row.error = error instanceof Error ? error.message : String(error);
          if (row.old) Object.assign(row, { run: undefined, series: undefined, old: false });
        }
      }
      left--;
      show();
    };
    const take = (row: Row, draft: boolean) => (finished: Finished) => {
      if (draft && !row.draft) return;
      row.draft = draft;
      row.old = false;
      row.outcome = finished.outcome;
      row.run = JSON.parse(finished.outcome) as Run;
      row.series = finished.series ?? undefined;
      row.took_ms = finished.took_ms;
    };
    const jobs: Promise<void>[] = [];
    const each = (begin: (row: Row, what: unknown) => Promise<void>) => {
      rows.forEach((row, index) => jobs.push(begin(row, opened.variants[index]!.what)));
    };
    if (!isSetup || choice.duration_s > 2 * DRAFT_S) {
      each((row, what) => one(row, what, { ...seed, at_most_s: DRAFT_S, series: true }, take(row, true)));
    }
    each((row, what) => one(row, what, { ...seed, series: true }, take(row, false)));
    if (isSetup) {
      for (let next = 1; next < choice.runs; next++) {
        each((row, what) =>
          one(row, what, { seed: choice.seed + next, series: false }, (finished) => {
            row.cloud.push(JSON.parse(finished.outcome) as Run);
            // By seed, whichever comes first: what is saved of them has the same bytes each time.
            row.cloud.sort((a, b) => a.seed - b.seed);
          }),
        );
      }
    }
    show();
    await Promise.all(jobs);
    cancelAnimationFrame(frame);
    now();
  }
}
