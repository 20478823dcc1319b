// Throughput against the 95th percentile of delay: one mark for each scheme, a small one for each seed.
import { colourClass, outline, shapeOf } from "./looks";
import { dominates, median, type Row, type Run } from "./results";
import { texts } from "./texts";

const t = texts.results;
const height = 360;
const frame = { left: 56, right: 20, top: 16, bottom: 44 };

interface Point { row: Row; mbps: number; ms: number; seeds: { mbps: number; ms: number }[] }

const place = (run: Run) => ({ mbps: run.throughput_mbps, ms: run.queueing_delay_ms?.p95 ?? NaN });

export function points(rows: Row[]): Point[] {
  return rows.flatMap((row) => {
    if (!row.run) return [];
    const seeds = [row.run, ...row.cloud].map(place).filter(({ ms }) => Number.isFinite(ms));
    if (seeds.length === 0) return [];
    return [{ row, mbps: median(seeds.map((seed) => seed.mbps)), ms: median(seeds.map((seed) => seed.ms)), seeds }];
  });
}

/** Marks of an axis: 1, 2, 5 times powers of ten on a logarithmic one. */
function ticks(low: number, high: number, log: boolean): number[] {
  if (log) {
    const found: number[] = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      for (const step of [1, 2, 5]) {
        const value = step * 10 ** power;
        if (value >= low && value <= high) found.push(value);
      }
    }
    return found.length > 8 ? found.filter((value) => /^1/.test(value.toExponential())) : found;
  }
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= rough) ?? power;
  const found: number[] = [];
  for (let value = Math.ceil(low / step) * step; value <= high * 1.0001; value += step) found.push(Number(value.toPrecision(6)));
  return found;
}

export function Scatter({ rows, svg, narrow }: { rows: Row[]; svg?: (element: SVGSVGElement | null) => void; narrow: boolean }) {
  // Letters keep their size on a phone.
  const width = narrow ? 400 : 640;
  const all = points(rows);
  if (all.length === 0) return <div class="scatter empty" aria-hidden="true" />;
  const every = all.flatMap((point) => point.seeds);
  const [low, high] = [Math.min(...every.map((seed) => seed.ms)), Math.max(...every.map((seed) => seed.ms))];
  const log = low > 0 && high / low > 6;
  const [left, right] = log ? [low / 1.25, high * 1.25] : [Math.max(0, low - (high - low) * 0.15 - 2), high + (high - low) * 0.15 + 2];
  const speeds = every.map((seed) => seed.mbps);
  const span = Math.max(Math.max(...speeds) - Math.min(...speeds), 0.05 * Math.max(...speeds), 0.01);
  const bottom = Math.max(0, Math.min(...speeds) - 0.15 * span);
  const top = Math.max(...speeds) + 0.15 * span;
  const share = (ms: number) => (log ? Math.log(ms / left) / Math.log(right / left) : (ms - left) / (right - left));
  // More delay is further to the left, so that better is up and to the right.
  const x = (ms: number) => width - frame.right - share(ms) * (width - frame.left - frame.right);
  const y = (mbps: number) => height - frame.bottom - ((mbps - bottom) / (top - bottom)) * (height - frame.top - frame.bottom);
  const best = all.filter((point) => !all.some((other) => dominates(other, point))).sort((a, b) => a.ms - b.ms);
  const labels = spread(all.map((point) => ({ x: x(point.ms), y: y(point.mbps), text: point.row.label })), width);
  return (
    <svg ref={svg} class="scatter" viewBox={`0 0 ${width} ${height}`} role="group" aria-label={t.scatter}>
      <g class="grid">
        {ticks(left, right, log).map((ms) => (
          <g key={ms}>
            <line x1={x(ms)} x2={x(ms)} y1={frame.top} y2={height - frame.bottom} />
            <text x={x(ms)} y={height - frame.bottom + 16} text-anchor="middle">{ms}</text>
          </g>
        ))}
        {ticks(bottom, top, false).map((mbps) => (
          <g key={mbps}>
            <line x1={frame.left} x2={width - frame.right} y1={y(mbps)} y2={y(mbps)} />
            <text x={frame.left - 8} y={y(mbps) + 4} text-anchor="end">{mbps}</text>
          </g>
        ))}
        <text class="axis" x={(frame.left + width - frame.right) / 2} y={height - 8} text-anchor="middle">{t.scatterX}</text>
        <text class="axis" transform={`translate(14 ${(height - frame.bottom + frame.top) / 2}) rotate(-90)`} text-anchor="middle">{t.scatterY}</text>
        <text class="better" x={width - frame.right - 6} y={frame.top + 14} text-anchor="end">{t.better} ↗</text>
      </g>
      <polyline class="frontier" points={best.map((point) => `${x(point.ms)},${y(point.mbps)}`).join(" ")} />
      {all.map(({ row, seeds }) => (
        <g key={row.label} class={`cloud ${colourClass(row.index)}`}>
          {seeds.length > 1 && seeds.map((seed, index) => <path key={index} d={outline(shapeOf(row.index), 3)} transform={`translate(${x(seed.ms)} ${y(seed.mbps)})`} />)}
        </g>
      ))}
      {all.map(({ row, ms, mbps }, index) => (
        <g key={row.label} class={`point ${colourClass(row.index)}`} tabIndex={0} role="img" aria-label={t.point(row.label, mbps, ms)}>
          <title>{t.point(row.label, mbps, ms)}</title>
          <path d={outline(shapeOf(row.index), 7)} transform={`translate(${x(ms)} ${y(mbps)})`} />
          {labels[index]!.shown && <text x={labels[index]!.x} y={labels[index]!.y} text-anchor={labels[index]!.anchor}>{row.label}</text>}
        </g>
      ))}
    </svg>
  );
}

interface Label { x: number; y: number; anchor: "start" | "end"; shown: boolean }

/** Places for the labels, beside their points, none over another; what finds no place is not shown. */
function spread(points: { x: number; y: number; text: string }[], width: number): Label[] {
  const taken: { left: number; right: number; y: number }[] = points.map(({ x, y }) => ({ left: x - 8, right: x + 8, y }));
  return points.map(({ x, y, text }, own) => {
    const long = text.length * 6.8 + 4;
    for (const [side, dy] of [[1, 4], [-1, 4], [1, -9], [-1, -9], [1, 17], [-1, 17], [1, -20], [-1, -20]] as const) {
      const left = side > 0 ? x + 11 : x - 11 - long;
      const at = { left, right: left + long, y: y + dy - 4 };
      const inside = left > 4 && left + long < width - 4 && at.y > 8 && at.y < height - frame.bottom;
      if (inside && !taken.some((other, index) => index !== own && at.left < other.right && other.left < at.right && Math.abs(other.y - at.y) < 11)) {
        taken.push(at);
        return { x: side > 0 ? x + 11 : x - 11, y: y + dy, anchor: side > 0 ? "start" : "end", shown: true };
      }
    }
    return { x, y, anchor: "start", shown: false };
  });
}
