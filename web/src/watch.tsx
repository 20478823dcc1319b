// The animation: a sender, a queue, a link and a receiver, with every packet and its mark.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Select } from "./controls";
import { colour } from "./looks";
import type { Choice } from "./model";
import type { Row } from "./results";
import type { Opened, Session } from "./session";
import { texts } from "./texts";

const t = texts.watch;

/** Flow, link or -1, whether it is an ACK, mark, since when it is there, number, when it was sent, identity. */
type Packet = [number, number, number, number, number, number | null, number, number];

interface FlowFrame {
  name: string; phase: string; cwnd_bytes: number; inflight_bytes: number; pacing_mbps: number | null; srtt_ms: number | null;
  sent: number; lost: number; state: Record<string, number | null>;
}
interface LinkFrame {
  name: string; queue_packets: number; queue_bytes: number; sojourn_ms: number | null; capacity_mbps: number; dropped: number;
  state: Record<string, number | null>;
}
export interface Frame { now_s: number; flows: FlowFrame[]; links: LinkFrame[]; packets: Packet[]; packets_on_their_way: number }
interface About {
  name: string; end_s: number;
  flows: { name: string; controller: string; forward_ms: number; reverse_ms: number; mss: number }[];
  links: { name: string; queue: string; buffer: string }[];
}

/** At most so far may the clock run ahead of the last frame, s of the run. */
const ahead = 1;

export function Watch({ session, choice, opened, rows, theme, at, embedded }: {
  session: Session; choice: Choice; opened: Opened | undefined; rows: Row[]; theme: string; at: number; embedded: boolean;
}) {
  const variants = opened?.variants ?? [];
  const labels = variants.map(({ label }) => label);
  const [first, setFirst] = useState("");
  const [second, setSecond] = useState("");
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(0.1);
  const [time, setTime] = useState(at);
  const [about, setAbout] = useState<(About | undefined)[]>([]);
  const [frames, setFrames] = useState<(Frame | undefined)[]>([]);
  const [fault, setFault] = useState("");
  const [parted, setParted] = useState("");
  const clock = useRef(at);
  const pending = useRef(false);
  const generation = useRef(0);

  const a = labels.includes(first) ? first : (labels[0] ?? "");
  const b = labels.includes(second) && second !== a ? second : "";
  const lanes = useMemo(() => [a, b].filter((label) => label !== "").map((label) => variants[labels.indexOf(label)]!), [a, b, opened]);
  const seed = choice.source.kind === "setup" ? { seed: choice.seed } : {};
  const end = about[0]?.end_s ?? choice.duration_s;

  useEffect(() => { clock.current = at; setTime(at); }, [at]);

  /** Asks for what every lane looks like at a time. */
  const look = async (until: number) => {
    const asked = generation.current;
    pending.current = true;
    try {
      const next = await Promise.all(lanes.map((_, lane) => session.desk.ask<Frame>({ do: "frame", lane, until_s: until })));
      if (asked === generation.current) setFrames(next);
    } catch (error) {
      if (asked === generation.current) {
        setFault(error instanceof Error ? error.message : String(error));
        setPlaying(false);
      }
    } finally {
      if (asked === generation.current) pending.current = false;
    }
  };

  useEffect(() => {
    const asked = ++generation.current;
    setParted("");
    setFault("");
    const open = async () => {
      try {
        const found = await Promise.all(lanes.map((variant, lane) => session.desk.ask<About>({ do: "watch", lane, what: variant.what, ...seed })));
        if (asked !== generation.current) return;
        setAbout(found);
        const until = Math.min(clock.current, Math.max(0, (found[0]?.end_s ?? 0)));
        clock.current = until;
        setTime(until);
        await look(until);
      } catch (error) {
        if (asked === generation.current) setFault(error instanceof Error ? error.message : String(error));
      }
    };
    if (lanes.length > 0) void open();
    return () => { generation.current++; };
  }, [lanes, choice.seed]);

  useEffect(() => {
    if (!playing) return;
    let last = performance.now();
    let handle = 0;
    const tick = (now: number) => {
      const shown = frames_.current[0]?.now_s ?? clock.current;
      clock.current = Math.min(clock.current + (Math.min(now - last, 100) / 1000) * speed, end, shown + ahead);
      last = now;
      setTime(clock.current);
      if (!pending.current) void look(clock.current);
      if (clock.current >= end) setPlaying(false);
      else handle = requestAnimationFrame(tick);
    };
    handle = requestAnimationFrame(tick);
    return () => cancelAnimationFrame(handle);
  }, [playing, speed, lanes, end]);

  const frames_ = useRef(frames);
  frames_.current = frames;

  const seek = (to: number) => {
    clock.current = Math.min(Math.max(to, 0), end);
    setTime(clock.current);
    void look(clock.current);
  };
  const part = async () => {
    try {
      const found = await session.desk.ask<{ number: number | null; one_s?: number | null; other_s?: number | null }>({ do: "part", one: lanes[0]!.what, other: lanes[1]!.what, ...seed });
      if (found.number === null) return setParted(t.partedNever);
      const say = (seconds: number | null | undefined) => (typeof seconds === "number" ? `${seconds.toFixed(4)} s` : t.atNever);
      setParted(t.parted(found.number, a, b, say(found.one_s), say(found.other_s)));
      const there = Math.min(found.one_s ?? Infinity, found.other_s ?? Infinity);
      if (Number.isFinite(there)) seek(there);
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error));
    }
  };

  if (variants.length === 0) return <p>{t.choose}</p>;
  return (
    <div class="watch">
      {!embedded && <p class="soft">{t.intro}</p>}
      <div class="bar">
        <Select label={t.lane(0)} value={a} options={labels} change={setFirst} />
        <Select label={t.lane(1)} value={b} options={[["", t.second], ...labels.filter((label) => label !== a).map((label): [string, string] => [label, label])]} change={setSecond} />
        <Select label={t.speed} value={String(speed)} options={t.speeds.map(([value, text]): [string, string] => [String(value), text])} change={(value) => setSpeed(Number(value))} />
      </div>
      <div class="bar">
        <button type="button" class="primary" aria-pressed={playing} onClick={() => { if (!playing && clock.current >= end) seek(0); setPlaying(!playing); }}>{playing ? `❚❚ ${t.pause}` : `▶ ${t.play}`}</button>
        <button type="button" onClick={() => seek(clock.current - 0.001)}>{t.back}</button>
        <button type="button" onClick={() => seek(clock.current + 0.001)}>{t.step}</button>
        {b && <button type="button" onClick={() => void part()}>{t.part}</button>}
        <Legend />
      </div>
      {parted && <p role="status">{parted}</p>}
      {fault && <p class="error" role="alert">{fault}</p>}
      <div class="stage">
        <div>
          {lanes.map((variant, lane) => (
            <Lane key={lane} label={variant.label} about={about[lane]} frame={frames[lane]} time={time} theme={theme} />
          ))}
          <Strip row={rows.find((row) => row.label === a)} end={end} time={time} />
          <div class="scrub">
            <p>{t.time}: <output>{time.toFixed(3)} s</output></p>
            <input type="range" aria-label={t.time} aria-valuetext={`${time.toFixed(3)} s`} min={0} max={end} step={0.001} value={time} onInput={(event) => { setPlaying(false); seek(Number(event.currentTarget.value)); }} />
          </div>
        </div>
        <div class="lanes">
          {lanes.map((variant, lane) => frames[lane] && about[lane] && (
            <Terms key={lane} label={variant.label} frame={frames[lane]!} about={about[lane]!} open={parted !== ""} />
          ))}
        </div>
      </div>
    </div>
  );
}

const marks = ["none", "accelerate", "brake", "ce"] as const;

function Legend() {
  return (
    <ul class="legend">
      {marks.map((mark, index) => (
        <li key={mark}><svg viewBox="-6 -6 12 12" aria-hidden="true" class={`mark-${mark}`}><path d={markPath(index)} /></svg>{t.legend[mark]}</li>
      ))}
    </ul>
  );
}

function markPath(mark: number, r = 4.5): string {
  if (mark === 1) return `M0 ${-r}L${r} ${0.8 * r}H${-r}z`;
  if (mark === 2) return `M${-0.85 * r} ${-0.85 * r}h${1.7 * r}v${1.7 * r}h${-1.7 * r}z`;
  if (mark === 3) return `M0 ${-1.2 * r}L${1.2 * r} 0L0 ${1.2 * r}L${-1.2 * r} 0z`;
  return `M${-0.8 * r} 0a${0.8 * r} ${0.8 * r} 0 1 0 ${1.6 * r} 0a${0.8 * r} ${0.8 * r} 0 1 0 ${-1.6 * r} 0z`;
}

/** The link that the scene is about. */
const link = 0;

function Lane({ label, about, frame, time, theme }: { label: string; about: About | undefined; frame: Frame | undefined; time: number; theme: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const paths = useMemo(() => marks.map((_, index) => new Path2D(markPath(index))), []);

  useEffect(() => {
    const element = canvas.current;
    if (!element || !frame || !about) return;
    const ratio = window.devicePixelRatio || 1;
    const width = element.clientWidth;
    const height = element.clientHeight;
    if (element.width !== Math.round(width * ratio)) element.width = Math.round(width * ratio);
    if (element.height !== Math.round(height * ratio)) element.height = Math.round(height * ratio);
    const pen = element.getContext("2d")!;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const ink = colour("ink");
    const soft = colour("ink-soft");
    const line = colour("line");
    const fills = marks.map((mark) => colour(`mark-${mark}`));
    const narrow = width < 560;
    const box = narrow ? 46 : 74;
    const sender = { x: 6, width: box };
    const queue = { x: sender.width + (narrow ? 16 : 34), width: width * (narrow ? 0.24 : 0.28) };
    const pipe = { from: queue.x + queue.width + 10, to: width - box - 16 };
    const receiver = { x: width - box - 6, width: box };
    const top = 34;
    const tall = 66;
    const back = height - 34;
    pen.font = "12px sans-serif";
    pen.textBaseline = "middle";
    pen.lineWidth = 1;
    pen.strokeStyle = line;
    // The way there and the way back.
    pen.strokeRect(queue.x, top, queue.width, tall);
    pen.beginPath();
    pen.moveTo(sender.x + sender.width, top + tall / 2);
    pen.lineTo(queue.x, top + tall / 2);
    pen.moveTo(pipe.from - 10, top + tall / 2 - 12);
    pen.lineTo(pipe.to + 10, top + tall / 2 - 12);
    pen.moveTo(pipe.from - 10, top + tall / 2 + 12);
    pen.lineTo(pipe.to + 10, top + tall / 2 + 12);
    pen.moveTo(receiver.x + receiver.width / 2, top + tall);
    pen.lineTo(receiver.x + receiver.width / 2, back);
    pen.lineTo(sender.x + sender.width / 2, back);
    pen.lineTo(sender.x + sender.width / 2, top + tall);
    pen.stroke();
    pen.fillStyle = colour("surface-2");
    for (const end of [sender, receiver]) {
      pen.fillRect(end.x, top, end.width, tall);
      pen.strokeRect(end.x, top, end.width, tall);
    }
    const here = frame.links[link]!;
    const flow = frame.flows[0];
    const words = (text: string, x: number, y: number, style = soft, align: CanvasTextAlign = "center") => {
      pen.fillStyle = style;
      pen.textAlign = align;
      pen.fillText(text, x, y);
    };
    words(t.sender, sender.x + sender.width / 2, top - 14);
    words(t.receiver, receiver.x + receiver.width / 2, top - 14);
    words(narrow ? t.queued(here.queue_packets) : t.queuedBy(here.queue_packets, about.links[link]!.queue.split(":")[0]!), queue.x + queue.width / 2, top - 14);
    words(t.linkRate(here.capacity_mbps), (pipe.from + pipe.to) / 2, top - 14);
    words(t.acks, (pipe.from + pipe.to) / 2, back + 18);
    if (flow) {
      words((flow.cwnd_bytes / (about.flows[0]?.mss || 1448)).toFixed(1), sender.x + sender.width / 2, top + tall / 2 - 9, ink);
      words(narrow ? t.cwnd : t.termNames.cwnd, sender.x + sender.width / 2, top + tall / 2 + 9);
    }
    // Packets. Those in the queue stand in columns, the next one to leave at the right.
    const waiting: Packet[] = [];
    const draw = (mark: number, x: number, y: number, scale = 1) => {
      pen.save();
      pen.translate(x, y);
      pen.scale(scale, scale);
      pen.fillStyle = fills[mark]!;
      pen.fill(paths[mark]!);
      pen.restore();
    };
    for (const packet of frame.packets) {
      const [flowIndex, place, isAck, mark, since] = packet;
      if (!isAck && place === link) {
        waiting.push(packet);
        continue;
      }
      const own = about.flows[flowIndex];
      const travel = ((isAck ? own?.reverse_ms : own?.forward_ms) ?? 50) / 1000;
      const share = travel > 0 ? Math.min(Math.max((time - since) / travel, 0), 1) : 0.5;
      if (isAck) {
        const inLink = place >= 0;
        const along = inLink ? 0 : share;
        const x = receiver.x + receiver.width / 2 - along * (receiver.x + receiver.width / 2 - sender.x - sender.width / 2);
        draw(mark, x, back, 0.75);
      } else {
        const x = place > link ? (pipe.from + pipe.to) / 2 : pipe.from + share * (pipe.to - pipe.from);
        const lane = about.flows.length > 1 ? ((flowIndex % 3) - 1) * 7 : 0;
        draw(mark, x, top + tall / 2 + lane);
      }
    }
    const rows = 5;
    const cell = Math.min(11, (queue.width - 8) / Math.max(1, Math.ceil(waiting.length / rows)));
    waiting.sort((one, other) => one[4] - other[4] || one[7] - other[7]);
    waiting.forEach((packet, index) => {
      const column = Math.floor(index / rows);
      const x = queue.x + queue.width - 6 - cell / 2 - column * cell;
      const y = top + 8 + (index % rows) * ((tall - 16) / (rows - 1));
      draw(packet[3], x, y, Math.min(1, cell / 9));
    });
  }, [frame, time, about, theme]);

  const now = `${time.toFixed(3)} s`;
  const here = frame?.links[link];
  return (
    <figure class="lane">
      <figcaption>{label}</figcaption>
      <canvas ref={canvas} role="img" aria-label={here ? t.scene(label, now, here.queue_packets, frame!.packets_on_their_way) : label} />
      {frame && frame.packets_on_their_way > frame.packets.length && <p class="soft">{t.more(frame.packets.length, frame.packets_on_their_way)}</p>}
    </figure>
  );
}

/** Capacity and delay of the whole run, behind the slider. */
function Strip({ row, end, time }: { row: Row | undefined; end: number; time: number }) {
  const link = row?.series?.links[0];
  const width = 1000;
  const path = (column: (number | null)[] | undefined, most: number) => {
    let pen = "M";
    return (column ?? []).map((value, index) => {
      if (value === null) { pen = "M"; return ""; }
      const point = `${pen}${((width * (link!.time_s[index] ?? 0)) / end).toFixed(1)} ${(48 - (46 * value) / most).toFixed(1)}`;
      pen = "L";
      return point;
    }).join("");
  };
  const most = (column: (number | null)[] | undefined) => Math.max(1e-9, ...(column ?? []).map((value) => value ?? 0));
  return (
    <svg class="strip" viewBox={`0 0 ${width} 50`} preserveAspectRatio="none" role="img" aria-label={t.strip}>
      {link && <path class="capacity" d={path(link.capacity_mbps, most(link.capacity_mbps))} />}
      {link && <path class={`delay c${(row?.index ?? 0) % 8}`} d={path(link.queueing_delay_p95_ms, most(link.queueing_delay_p95_ms))} />}
      <line class="now" x1={(width * time) / end} x2={(width * time) / end} y1={0} y2={50} />
    </svg>
  );
}

const mbit = (bps: number | null | undefined) => (typeof bps === "number" ? t.megabits(bps / 1e6) : "–");
const number = (value: number | null | undefined, digits = 2) => (typeof value === "number" ? value.toFixed(digits) : "–");

/** The values of a lane, and its latest packets, which are `open` once somebody asks where two schemes part. */
function Terms({ label, frame, about, open }: { label: string; frame: Frame; about: About; open: boolean }) {
  const here = frame.links[link]!;
  const flow = frame.flows[0];
  const state = here.state;
  const mss = about.flows[0]?.mss || 1448;
  const mu = state.capacity_bps;
  const names = t.termNames;
  const hasEquation = "f" in state && "tokens" in state;
  const rows: [string, string][] = [
    ...(hasEquation
      ? ([
          [names.mu, mbit(mu)],
          [names.cr, mbit(state.measured_rate_bps)],
          [names.x, mu ? t.milliseconds((here.queue_bytes * 8e3) / mu) : "–"],
          [names.tr, mbit(state.target_rate_bps)],
          [names.f, number(state.f)],
          [names.tokens, number(state.tokens)],
        ] as [string, string][])
      : []),
    [names.cwnd, flow ? t.packetCount(flow.cwnd_bytes / mss, 1) : "–"],
    [names.inflight, flow ? t.packetCount(flow.inflight_bytes / mss) : "–"],
    [names.srtt, flow?.srtt_ms != null ? t.milliseconds(flow.srtt_ms) : "–"],
    [names.waiting, t.waiting(here.queue_packets, here.sojourn_ms ?? 0)],
    [names.dropped, String(here.dropped)],
  ];
  const others = [...Object.entries(state), ...Object.entries(flow?.state ?? {})];
  const packets = frame.packets.filter((packet) => packet[5] !== null).slice(-8).reverse();
  return (
    <section class="terms">
      <h3>{label}</h3>
      <p class="equation">{hasEquation ? t.equation : t.noRouter}</p>
      <table aria-label={`${t.terms}, ${label}`}>
        <tbody>{rows.map(([name, value]) => <tr key={name}><th scope="row">{name}</th><td>{value}</td></tr>)}</tbody>
      </table>
      {hasEquation && typeof state.f === "number" && (
        <div class="gauge" aria-hidden="true"><div class="accelerate" style={{ width: `${100 * Math.min(1, Math.max(0, state.f))}%` }} /></div>
      )}
      <details>
        <summary>{t.values}</summary>
        <table><tbody>{others.map(([name, value], index) => <tr key={index}><th scope="row">{name}</th><td>{number(value, 3)}</td></tr>)}</tbody></table>
      </details>
      <details open={open}>
        <summary>{t.packets}</summary>
        <table>
          <thead><tr><th scope="col">{t.packet.number}</th><th scope="col">{t.packet.sent}</th><th scope="col">{t.packet.place}</th><th scope="col">{t.packet.mark}</th></tr></thead>
          <tbody>
            {packets.map((packet) => (
              <tr key={packet[7]}>
                <td>{packet[5]! + 1}</td><td>{packet[6].toFixed(4)}</td><td>{packet[1] >= 0 ? t.places.queue : t.places.forward}</td><td>{t.legend[marks[packet[3]]!]}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </section>
  );
}
