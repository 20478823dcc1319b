// Choosing a trace: embedded, from the generator, drawn, or from a file.
import { useEffect, useRef, useState } from "preact/hooks";
import { Free, Select } from "./controls";
import type { Choice, Recipe, TraceChoice } from "./model";
import type { Registry, Shown } from "./session";
import { texts } from "./texts";

const t = texts.trace;
const largest = 20_000_000;

export function TracePanel({ choice, registry, shown, changed, file }: {
  choice: Choice; registry: Registry; shown: Shown | undefined; changed(trace: TraceChoice): void; file(name: string, bytes: Uint8Array): void;
}) {
  const { trace } = choice;
  const kinds = ["embedded", "generator", "drawn", "file"] as const;
  const names = registry.traces.map((entry) => entry.name);
  const choose = (kind: (typeof kinds)[number]) => {
    if (kind === trace.kind) return;
    if (kind === "embedded") changed({ kind, name: "lte-driving" });
    if (kind === "generator") changed({ kind, recipe: structuredClone(registry.recipes["lte-driving"]!) });
    if (kind === "drawn") changed({ kind, step_s: 1, mbps: Array.from({ length: 30 }, (_, i) => Math.round(60 + 40 * Math.sin(i / 3)) / 10) });
    if (kind === "file") setOwn(true);
  };
  const [own, setOwn] = useState(trace.kind === "file");
  const kind = own ? "file" : trace.kind;
  const about = trace.kind === "embedded" && registry.traces.find((entry) => entry.name === trace.name)?.about;
  return (
    <>
      <div class="choices" role="group" aria-label={t.kindHelp}>
        {kinds.map((each) => (
          <button key={each} type="button" aria-pressed={kind === each} onClick={() => { setOwn(each === "file"); choose(each); }}>{t[each]}</button>
        ))}
      </div>
      {kind === "embedded" && <Select label={t.choose} value={trace.kind === "embedded" ? trace.name : ""} options={names} change={(name) => changed({ kind: "embedded", name })} />}
      {kind === "generator" && trace.kind === "generator" && <Generator recipe={trace.recipe} registry={registry} changed={(recipe) => changed({ kind: "generator", recipe })} />}
      {kind === "drawn" && trace.kind === "drawn" && <Draw trace={trace} changed={changed} />}
      {kind === "file" && <File_ take={file} />}
      {kind === "file" && trace.kind === "file" && shown?.directions && (
        <Select label={t.direction} value={shown.direction ?? ""} options={shown.directions.map(([value, bytes]): [string, string] => [value, t.directions(value, bytes / 1e6)])} change={(direction) => changed({ ...trace, direction })} />
      )}
      {kind !== "drawn" && shown && <Preview shown={shown} />}
      {shown && <p class="soft">{t.facts(shown.mean_mbps, shown.cv_100ms, shown.duration_s, shown.longest_gap_ms)}</p>}
      {about && <p class="soft">{about.trim()}</p>}
      {kind === "file" && shown?.notes?.map((note) => <p key={note} class="soft">{note}</p>)}
    </>
  );
}

function Preview({ shown }: { shown: Shown }) {
  const most = Math.max(...shown.mbps, 1e-9);
  const path = shown.mbps.map((mbps, index) => `${index ? "L" : "M"}${(300 * index) / Math.max(shown.mbps.length - 1, 1)} ${58 - (56 * mbps) / most}`).join("");
  return (
    <svg class="preview" viewBox="0 0 300 60" preserveAspectRatio="none" role="img" aria-label={t.preview}>
      <path class="area" d={`${path}L300 60L0 60z`} />
      <path class="edge" d={path} />
    </svg>
  );
}

const seconds = (text: string | undefined) => {
  const found = /^([\d.]+)(us|ms|s|min|h)$/.exec(text ?? "");
  if (!found) return 0;
  return Number(found[1]) * { us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 }[found[2] as "s"];
};
const mbps = (text: string) => {
  const found = /^([\d.]+)([kMG]?)bps$/.exec(text);
  return found ? Number(found[1]) * ({ "": 1e-6, k: 1e-3, M: 1, G: 1e3 }[found[2] as ""] ?? 1) : 5;
};

function Generator({ recipe, registry, changed }: { recipe: Recipe; registry: Registry; changed(recipe: Recipe): void }) {
  const r = texts.recipe;
  const cellular = recipe.cellular;
  const models = Object.entries(registry.recipes).filter(([, model]) => model.cellular).map(([name]) => name);
  const change = (change: (cellular: NonNullable<Recipe["cellular"]>) => void) => {
    const copy = structuredClone(recipe);
    if (copy.cellular) change(copy.cellular);
    changed(copy);
  };
  if (!cellular) return null;
  const fading = cellular.fading;
  const setFading = (index: number, sigma: number) => change((c) => { const process = c.fading[index]; if (process) process.sigma = sigma; });
  return (
    <div class="fields">
      <Select label={t.begin} value="" options={[["", "–"], ...models.map((name): [string, string] => [name, name])]} change={(name) => name && changed(structuredClone(registry.recipes[name]!))} />
      <Free label={r.mean} low={0.5} high={100} step={0.5} value={mbps(cellular.mean)} change={(value) => change((c) => { c.mean = `${value}Mbps`; })} />
      <Free label={r.snr} low={-5} high={30} step={0.5} value={cellular.snr} change={(value) => change((c) => { c.snr = value; })} />
      {fading.length > 0 && <Free label={r.slow} low={0} high={15} step={0.1} value={fading[0]!.sigma} change={(value) => setFading(0, value)} />}
      {fading.length > 1 && <Free label={r.fast} low={0} high={10} step={0.1} value={fading[fading.length - 1]!.sigma} change={(value) => setFading(fading.length - 1, value)} />}
      <Free label={r.burst} low={1} high={20} step={0.1} value={cellular.burst} change={(value) => change((c) => { c.burst = value; })} />
      <Free label={r.outages} low={0} high={60} step={0.5} value={seconds(cellular.outages?.every)} change={(value) => change((c) => {
        if (value === 0) delete c.outages;
        else c.outages = { ...(c.outages ?? { shortest: "30ms", longest: "1s", exponent: 1.5 }), every: `${value}s` };
      })} />
      {cellular.outages && <Free label={r.longest} low={50} high={5000} step={50} value={seconds(cellular.outages.longest) * 1000} change={(value) => change((c) => { if (c.outages) { c.outages.longest = `${value}ms`; if (seconds(c.outages.shortest) * 1000 > value) c.outages.shortest = "30ms"; } })} />}
      <Free label={r.handover} low={0} high={60} step={1} value={seconds(cellular.handover?.every)} change={(value) => change((c) => {
        if (value === 0) delete c.handover;
        else c.handover = { ...(c.handover ?? { gap: "60ms", sigma: 3 }), every: `${value}s` };
      })} />
      <Free label={r.seed} low={0} high={100} step={1} value={recipe.seed} change={(seed) => changed({ ...structuredClone(recipe), seed })} />
    </div>
  );
}

function Draw({ trace, changed }: { trace: TraceChoice & { kind: "drawn" }; changed(trace: TraceChoice): void }) {
  const svg = useRef<SVGSVGElement>(null);
  const [at, setAt] = useState(0);
  const count = trace.mbps.length;
  const most = Math.max(12, ...trace.mbps);
  const set = (index: number, mbps: number) => {
    const next = [...trace.mbps];
    next[index] = Math.max(0, Math.round(mbps * 10) / 10);
    if (next.some((value) => value > 0)) changed({ ...trace, mbps: next });
  };
  const draw = (event: PointerEvent) => {
    if (!(event.buttons & 1)) return;
    const box = svg.current!.getBoundingClientRect();
    const index = Math.min(count - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * count)));
    setAt(index);
    set(index, (1 - (event.clientY - box.top) / box.height) * most);
  };
  const key = (event: KeyboardEvent) => {
    const now = trace.mbps[at] ?? 0;
    if (event.key === "ArrowLeft") setAt(Math.max(0, at - 1));
    else if (event.key === "ArrowRight") setAt(Math.min(count - 1, at + 1));
    else if (event.key === "ArrowUp") set(at, Math.min(now + 0.5, 1000));
    else if (event.key === "ArrowDown") set(at, now - 0.5);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <svg
        ref={svg} class="draw" viewBox={`0 0 ${count} 100`} preserveAspectRatio="none" tabIndex={0} role="slider" aria-label={t.drawLabel}
        aria-valuemin={0} aria-valuemax={most} aria-valuenow={trace.mbps[at]} aria-valuetext={t.drawValue(at, trace.mbps[at] ?? 0)}
        onPointerDown={(event) => { svg.current!.setPointerCapture(event.pointerId); draw(event); }} onPointerMove={draw} onKeyDown={key}
      >
        {trace.mbps.map((mbps, index) => <rect key={index} class={index === at ? "at" : ""} x={index + 0.05} width={0.9} y={100 - (100 * mbps) / most} height={(100 * mbps) / most} />)}
      </svg>
      <p class="soft">{t.drawHelp}</p>
    </>
  );
}

function File_({ take }: { take(name: string, bytes: Uint8Array): void }) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [fault, setFault] = useState("");
  const [over, setOver] = useState(false);
  const read = async (file: File | undefined) => {
    if (!file) return;
    if (file.size > largest) return setFault(t.tooLarge);
    setFault("");
    take(cleanName(file.name), new Uint8Array(await file.arrayBuffer()));
  };
  useEffect(() => {
    const stop = (event: DragEvent) => event.preventDefault();
    addEventListener("dragover", stop);
    addEventListener("drop", stop);
    return () => { removeEventListener("dragover", stop); removeEventListener("drop", stop); };
  }, []);
  return (
    <div
      class={over ? "drop over" : "drop"} onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)}
      onDrop={(event) => { event.preventDefault(); setOver(false); void read(event.dataTransfer?.files[0]); }}
    >
      <p>
        {t.drop}{" "}
        <button type="button" class="link" onClick={() => input.current!.click()}>{t.pick}</button>{" "}{t.paste}:
      </p>
      <input ref={input} type="file" class="hidden" aria-label={t.pick} tabIndex={-1} onChange={(event) => void read(event.currentTarget.files?.[0])} />
      <textarea rows={3} aria-label={t.pasteLabel} placeholder={t.pasteExample} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <button type="button" class="small" disabled={text.trim() === ""} onClick={() => take(t.pasted, new TextEncoder().encode(text))}>{t.take}</button>
      <p class="soft">{t.formats}</p>
      {fault && <p class="error" role="alert">{fault}</p>}
    </div>
  );
}

/** A name that scenarios and file systems take. */
function cleanName(name: string): string {
  const clean = name.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[.-]+/, "").slice(0, 60);
  return clean || t.unnamed;
}
