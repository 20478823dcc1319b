// Time series below each other, with one cursor and one zoom.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { colour, dashOf, schemeColour } from "./looks";
import type { Row } from "./results";
import { texts } from "./texts";

const t = texts.results;

export interface Line { label: string; index: number; values: (number | null)[]; fill?: boolean }
export interface Chart { id: string; title: string; times: number[]; lines: Line[]; from0: boolean }

/** The charts of the rows that are shown, about one link. */
export function chartsOf(rows: Row[], link: number, state: string): Chart[] {
  const with_ = rows.filter((row) => row.series?.links[link]);
  const first = with_[0];
  if (!first) return [];
  // Runs differ in length only while some of them are first looks: the longest decides the axis.
  const times = with_.map((row) => row.series!.links[link]!.time_s).reduce((a, b) => (b.length > a.length ? b : a));
  const fit = (values: (number | null)[] | undefined) => {
    const column = values ?? [];
    return column.length === times.length ? column : [...column, ...Array<null>(Math.max(0, times.length - column.length)).fill(null)].slice(0, times.length);
  };
  const longest = with_.find((row) => row.series!.links[link]!.time_s === times)!;
  const capacity: Line = { label: t.capacity, index: -1, values: fit(longest.series!.links[link]!.capacity_mbps), fill: true };
  const ofLink = (column: (row: Row) => (number | null)[]) => with_.map((row) => ({ label: row.label, index: row.index, values: fit(column(row)) }));
  const ofFlows = (column: (flow: NonNullable<Row["series"]>["flows"][number]) => (number | null)[] | undefined) =>
    with_.flatMap((row) => {
      const flows = row.series!.flows.slice(0, with_.length > 1 ? 1 : 8);
      return flows.flatMap((flow, place) => {
        const values = column(flow);
        const label = row.series!.flows.length > 1 ? `${row.label} ${flow.name}` : row.label;
        return values ? [{ label, index: with_.length > 1 ? row.index : row.index + place, values: fit(values) }] : [];
      });
    });
  const charts: Chart[] = [
    { id: "rate", title: t.charts.rate, times, from0: true, lines: [capacity, ...ofLink((row) => row.series!.links[link]!.throughput_mbps)] },
    { id: "delay", title: t.charts.delay, times, from0: true, lines: ofLink((row) => row.series!.links[link]!.queueing_delay_p95_ms) },
    { id: "cwnd", title: t.charts.cwnd, times, from0: true, lines: ofFlows((flow) => flow.cwnd_pkts) },
  ];
  const marks = ofLink((row) => row.series!.links[link]!.accelerate_fraction).filter((line) => line.values.some((value) => value !== null));
  if (marks.length > 0) charts.push({ id: "marks", title: t.charts.marks, times, from0: true, lines: marks });
  const states = ofFlows((flow) => flow.state[state]);
  if (states.length > 0) charts.push({ id: "state", title: `${t.charts.state}: ${state}`, times, from0: false, lines: states });
  return charts;
}

/** The names of all values that controllers show. */
export function stateNames(rows: Row[]): string[] {
  const names = rows.flatMap((row) => row.series?.flows.flatMap((flow) => Object.keys(flow.state)) ?? []);
  return [...new Set(names)].sort();
}

/** A number in few letters: 1.5k, 20M. */
function short(value: number): string {
  const size = Math.abs(value);
  const unit = [[1e9, "G"], [1e6, "M"], [1e4, "k"]].find(([from]) => size >= (from as number)) as [number, string] | undefined;
  if (!unit) return Number(value.toPrecision(4)).toString();
  const by = unit[1] === "k" ? 1e3 : unit[0];
  return `${Number((value / by).toPrecision(3))}${unit[1]}`;
}

/** `zoomed` gets the range that somebody has dragged over, and nothing on a double click. */
function make(chart: Chart, element: HTMLElement, group: string, zoomed: (range: [number, number] | null) => void): uPlot {
  const ink = colour("ink-soft");
  const grid = { stroke: colour("line"), width: 1 };
  const axis = { stroke: ink, grid, ticks: grid, font: "12px sans-serif" };
  const plot = new uPlot(
    {
      width: Math.max(element.clientWidth, 200),
      height: chart.id === "rate" || chart.id === "delay" ? 190 : 150,
      scales: { x: { time: false }, y: { range: (_, low, high) => (low === null || high === null ? [0, 1] : [chart.from0 ? 0 : low - 0.05 * (high - low || 1), high + 0.06 * (high - (chart.from0 ? 0 : low) || 1)]) } },
      axes: [{ ...axis, size: 28, values: (_, splits) => splits.map((value) => `${short(value)} s`) }, { ...axis, size: 52, values: (_, splits) => splits.map(short) }],
      cursor: {
        sync: { key: group, setSeries: false }, drag: { x: true, y: false, setScale: false }, points: { size: 6 },
        bind: { dblclick: () => () => { zoomed(null); return null; } },
      },
      legend: { live: true },
      series: [
        { label: texts.watch.time, value: (_, value) => (value === null ? "" : `${value.toFixed(2)} s`) },
        ...chart.lines.map((line): uPlot.Series => ({
          label: line.label,
          stroke: line.index < 0 ? colour("capacity") : schemeColour(line.index),
          width: line.fill ? 1 : 1.6,
          dash: line.index < 0 ? [] : dashOf(line.index),
          fill: line.fill ? colour("capacity-fill") : undefined,
          points: { show: false },
          value: (_, value) => (value === null || value === undefined ? "–" : short(value)),
        })),
      ],
      hooks: {
        setSelect: [(self) => {
          const { left, width } = self.select;
          if (width < 3) return;
          zoomed([self.posToVal(left, "x"), self.posToVal(left + width, "x")]);
          self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        }],
      },
    },
    [chart.times, ...chart.lines.map((line) => line.values)] as uPlot.AlignedData,
    element,
  );
  return plot;
}

export function Charts({ charts, theme, label, refs }: { charts: Chart[]; theme: string; label: string; refs?: (plots: uPlot[]) => void }) {
  const place = useRef<HTMLDivElement>(null);
  const plots = useRef<uPlot[]>([]);
  const zoom = useRef<[number, number] | null>(null);
  const times = useRef<number[]>([]);
  times.current = charts[0]?.times ?? [0, 1];
  // What must be made anew, and what only gets other values.
  const shape = JSON.stringify([theme, label, charts.map((chart) => [chart.id, chart.title, chart.lines.map((line) => [line.label, line.index])])]);

  const whole = (): [number, number] => {
    const all = times.current;
    return [all[0] ?? 0, all[all.length - 1] ?? 1];
  };
  /** Shows a range in all charts; without one the whole run, also when it becomes longer. */
  const show = (range: [number, number] | null) => {
    zoom.current = range;
    const [min, max] = range ?? whole();
    for (const plot of plots.current) plot.setScale("x", { min, max });
    if (place.current) place.current.dataset.range = `${min.toFixed(1)} ${max.toFixed(1)}`;
  };

  useEffect(() => {
    const element = place.current!;
    plots.current = charts.map((chart) => {
      const box = element.querySelector<HTMLElement>(`[data-chart="${chart.id}"]`)!;
      return make(chart, box, label, show);
    });
    show(zoom.current);
    refs?.(plots.current);
    const resized = new ResizeObserver(() => {
      for (const plot of plots.current) {
        const width = plot.root.parentElement?.clientWidth ?? 0;
        if (width > 0 && width !== plot.width) plot.setSize({ width, height: plot.height });
      }
    });
    resized.observe(element);
    return () => {
      resized.disconnect();
      plots.current.forEach((plot) => plot.destroy());
      plots.current = [];
    };
  }, [shape]);

  useEffect(() => {
    charts.forEach((chart, index) => plots.current[index]?.setData([chart.times, ...chart.lines.map((line) => line.values)] as uPlot.AlignedData, true));
    show(zoom.current);
  }, [charts]);

  const key = (event: KeyboardEvent) => {
    const [low, high] = whole();
    const [from, to] = zoom.current ?? [low, high];
    const length = to - from;
    const moved = (by: number): [number, number] => {
      const start = Math.min(Math.max(from + by, low), high - length);
      return [start, start + length];
    };
    const changed: Record<string, () => [number, number] | null> = {
      "+": () => [from + length / 4, to - length / 4],
      "=": () => [from + length / 4, to - length / 4],
      "-": () => (length * 2 >= high - low ? null : [Math.max(low, from - length / 2), Math.min(high, to + length / 2)]),
      "0": () => null,
      ArrowLeft: () => moved(-length / 4),
      ArrowRight: () => moved(length / 4),
    };
    const change = changed[event.key];
    if (!change) return;
    event.preventDefault();
    show(change());
  };

  return (
    <div class="charts" ref={place} tabIndex={0} role="group" aria-label={`${t.over}. ${t.overHelp}`} onKeyDown={key}>
      {charts.map((chart) => (
        <section key={chart.id} class="chart">
          <h4>{chart.title}</h4>
          <div data-chart={chart.id} />
        </section>
      ))}
      <button type="button" class="small" onClick={() => show(null)}>{t.whole}</button>
    </div>
  );
}
