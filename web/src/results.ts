// What comes back from runs.

export interface Summary { mean: number; p50: number; p95: number; p99: number; max: number }

export interface LinkOutcome {
  name: string; queue: string; capacity_mbps: number; throughput_mbps: number; utilization: number;
  queueing_delay_ms: Summary | null; dropped_packets: number;
}

export interface FlowOutcome {
  name: string; controller: string; throughput_mbps: number; loss_percent: number;
  application?: Record<string, number | null>;
}

export interface Run {
  scheme: string; trace: string; seed: number; duration_s: number; capacity_mbps: number; throughput_mbps: number;
  goodput_mbps: number; utilization: number; queueing_delay_ms: Summary | null; rtt_ms: Summary | null;
  loss_percent: number; delivered_packets: number; dropped_packets: number; retransmitted_packets: number;
  marks: { accelerate: number; brake: number; ce: number }; jain: number | null;
  links: LinkOutcome[]; flows: FlowOutcome[];
}

type Column = (number | null)[];

export interface LinkSeries {
  name: string; time_s: number[]; capacity_mbps: Column; throughput_mbps: Column;
  queueing_delay_mean_ms: Column; queueing_delay_p95_ms: Column; accelerate_fraction: Column;
}

export interface FlowSeries {
  name: string; time_s: number[]; throughput_mbps: Column; cwnd_pkts: Column; rtt_ms: Column; state: Record<string, Column>;
}

export interface Series { bin_s: number; links: LinkSeries[]; flows: FlowSeries[] }

export interface Finished { outcome: string; series: Series | null; took_ms: number }

/** How much a value is of another, with its interval over the seeds. */
export interface Ratio { value: number; interval95: [number, number] | null }

/** What to deploy, by what somebody can change. */
export interface Decision {
  today: string | null;
  choices: {
    change: "senders" | "queue" | "both"; best: { scheme: string; link_rate: boolean }; next: { scheme: string } | null;
    ahead: Ratio | null; throughput: Ratio | null; p95: Ratio | null;
  }[];
}

/** One row of the page: a scheme, or a scenario of a claim. */
export interface Row {
  /** What people call it. */
  label: string;
  /** Its place among all, which decides its colour. */
  index: number;
  run?: Run;
  /** The text of `run`, as the command prints it. */
  outcome?: string;
  series?: Series;
  /** The other seeds, rising. */
  cloud: Run[];
  /** Whether the run is only the beginning of the whole: a first look. */
  draft: boolean;
  /** Whether the run is that of another setup, shown until there is a newer one. */
  old: boolean;
  error?: string;
  took_ms?: number;
}

/** Whether what is shown of a row is all of it. */
export const isWhole = (row: Row) => row.run !== undefined && !row.draft;

/** Whether `one` is at least as good as `other` in throughput and delay, and better in one of them. */
export function dominates(one: { mbps: number; ms: number }, other: { mbps: number; ms: number }): boolean {
  return one.mbps >= other.mbps && one.ms <= other.ms && (one.mbps > other.mbps || one.ms < other.ms);
}

/** The number of the middle, or the mean of the two there. */
export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
