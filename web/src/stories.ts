// The setups of the stories; their words are in texts.ts.
import { usual, type Choice } from "./model";
import type { StoryName } from "./texts";

export interface Story {
  choice: Choice;
  /** Which tab shows it. */
  tab: "compare" | "watch";
  /** Where a run that is watched begins, s. */
  at_s?: number;
}

const choice = (changed: Partial<Choice>): Choice => ({ ...structuredClone(usual), random_offset: false, runs: 3, ...changed });

const twoBottlenecks = `name = "two bottlenecks"
duration = "50s"

[[link]]
name = "wireless"
rate = "8Mbps"
queue = "abc"

[[link]]
name = "wired"
rate = "12Mbps"
buffer = "250pkt"

[[flow]]
name = "abc"
controller = "abc"
rtt = "100ms"
path = ["wireless", "wired"]

[[flow]]
name = "cubic"
controller = "cubic"
rtt = "100ms"
path = ["wired"]
start = "10s"
stop = "40s"
`;

export const stories: Record<StoryName, Story> = {
  deep: { tab: "compare", choice: choice({ schemes: ["cubic", "newreno", "abc"], buffer_pkts: 1000 }) },
  codel: { tab: "compare", choice: choice({ schemes: ["cubic+codel", "cubic", "abc"] }) },
  follows: {
    tab: "compare",
    choice: choice({ schemes: ["abc", "cubic", "bbr"], trace: { kind: "embedded", name: "step" }, duration_s: 20 }),
  },
  bits: {
    tab: "watch",
    at_s: 4.4,
    choice: choice({ schemes: ["abc", "cubic"], trace: { kind: "embedded", name: "step" }, duration_s: 20 }),
  },
  coexist: { tab: "compare", choice: choice({ source: { kind: "text", text: twoBottlenecks } }) },
  bmcc: {
    tab: "compare",
    choice: choice({ schemes: ["bmcc", "abc", "xcp"], trace: { kind: "embedded", name: "fixed" }, duration_s: 30, rtt_ms: 80 }),
  },
  quicdc: {
    tab: "compare",
    choice: choice({ schemes: ["quicdc", "cubic", "copa"], trace: { kind: "embedded", name: "lte-walking" }, duration_s: 40 }),
  },
  starlink: {
    tab: "compare",
    choice: choice({ schemes: ["abc", "cubic", "bbr", "cubic+codel"], trace: { kind: "embedded", name: "satellite" }, buffer_pkts: 500 }),
  },
};
