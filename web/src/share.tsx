// Link, command and files of what is shown.
import { useEffect, useState } from "preact/hooks";
import { isPlain, traceName, type Choice } from "./model";
import { toLink } from "./permalink";
import { isWhole, type Row, type Run } from "./results";
import type { Opened, Session } from "./session";
import { texts } from "./texts";

const t = texts.share;

function save(name: string, type: string, data: BlobPart): void {
  const address = URL.createObjectURL(new Blob([data], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A word as a shell reads it back. */
const quote = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** The command that does the same. */
export function command(choice: Choice, scheme: string): string {
  const own = choice.source.kind === "setup" && choice.trace.kind !== "embedded";
  const trace = traceName(choice.trace);
  const before = own ? `${t.saveTrace(trace)}\n` : "";
  if (!isPlain(choice)) {
    return `${before}${t.saveToml}\nbrakelight run scenario.toml${choice.source.kind === "setup" && choice.runs > 1 ? ` --runs ${choice.runs}` : ""}`;
  }
  const words = [
    "brakelight", "compare", "--trace", own ? `./${trace}` : trace, "--schemes", choice.schemes.join(",") || scheme, "--rtt", `${choice.rtt_ms}ms`,
    "--buffer", `${choice.buffer_pkts}pkt`, "--duration", `${choice.duration_s}s`, "--runs", String(choice.runs), "--seed", String(choice.seed),
    "--reverse", `${choice.reverse_mbps}Mbps`, "--trace-offset", choice.random_offset ? "random" : "0s",
    ...(choice.against ? ["--against", choice.against] : []),
  ];
  return before + words.map(quote).join(" ");
}

/** The tables that can be saved. */
const tables = ["runs", "flows", "links", "link-series", "flow-series"] as const;
type Table = (typeof tables)[number];

/** Has the simulator write a table, with the columns that the command and the Python package give it. */
async function writeTable(session: Session, choice: Choice, rows: Row[], table: Table, form: "csv" | "arrow"): Promise<BlobPart> {
  const series = table.endsWith("series");
  // As `compare` has them: under the name of the scheme, with what it was run with.
  const setup = choice.source.kind === "setup"
    ? { rtt_ms: choice.rtt_ms, buffer: `${choice.buffer_pkts}pkt`, reverse: `${choice.reverse_mbps}Mbps`, against: choice.against || null, trace_offset_s: choice.random_offset ? null : 0 }
    : null;
  const runs = rows.flatMap((row) => {
    const of = (run: Run) => ({ ...run, scheme: row.label, setup });
    return [
      ...(row.run ? [{ run: of(row.run), series: series ? row.series : null }] : []),
      ...(series ? [] : row.cloud.map((run) => ({ run: of(run), series: null }))),
    ];
  });
  const file = await session.desk.ask<{ text?: string; base64?: string }>({ do: "table", table, form, runs });
  return file.text ?? Uint8Array.from(atob(file.base64 ?? ""), (letter) => letter.charCodeAt(0));
}

/** The picture with its styles written into it, so that it looks the same elsewhere. */
export function pictureText(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const from = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, index) => {
    const style = getComputedStyle(from[index]!);
    for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-weight"]) element.setAttribute(name, style.getPropertyValue(name));
    element.setAttribute("font-family", "sans-serif");
    element.removeAttribute("class");
    element.removeAttribute("tabindex");
  });
  const box = svg.viewBox.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(box.width));
  copy.setAttribute("height", String(box.height));
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", getComputedStyle(document.documentElement).getPropertyValue("--surface").trim());
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

async function toPng(svg: SVGSVGElement): Promise<Blob> {
  const address = URL.createObjectURL(new Blob([pictureText(svg)], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = 2 * svg.viewBox.baseVal.width;
    canvas.height = 2 * svg.viewBox.baseVal.height;
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error(texts.noPicture))), "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}

export function Share({ choice, rows, opened, session, picture, failed }: {
  choice: Choice; rows: Row[]; opened: Opened | undefined; session: Session; picture(): SVGSVGElement | null; failed(message: string): void;
}) {
  const [label, setLabel] = useState("");
  const [table, setTable] = useState<Table>("runs");
  const [address, setAddress] = useState(location.href);
  const [copied, setCopied] = useState(false);
  const labels = opened?.variants.map((variant) => variant.label) ?? [];
  const chosen = labels.includes(label) ? label : (labels[0] ?? "");
  useEffect(() => {
    let wanted = true;
    setCopied(false);
    void toLink(choice).then((hash) => wanted && setAddress(`${location.href.split("#")[0]}${hash}`));
    return () => { wanted = false; };
  }, [choice]);
  const variant = opened?.variants.find((each) => each.label === chosen);
  const row = rows.find((each) => each.label === chosen);
  const attempt = (work: () => Promise<void>) => () => { work().catch((error: Error) => failed(error.message)); };
  // Of first looks no table is made.
  const whole = rows.length > 0 && rows.every((row) => isWhole(row) || row.error);
  const file = chosen.replace(/[^\w.+-]+/g, "-") || "run";
  return (
    <div class="share">
      <label>{t.link}<input readOnly value={address} onFocus={(event) => event.currentTarget.select()} /></label>
      <button type="button" class="small" onClick={attempt(async () => { await navigator.clipboard.writeText(address); setCopied(true); })}>{t.copy}</button>
      {copied && <span role="status">{t.copied}</span>}
      <label>{t.command}<textarea readOnly rows={4} value={command(choice, chosen)} onFocus={(event) => event.currentTarget.select()} /></label>
      <div class="buttons">
        <label class="inline">{t.table}{" "}
          <select aria-label={t.table} value={table} onChange={(event) => setTable(event.currentTarget.value as Table)}>{tables.map((each) => <option key={each} value={each}>{t.tables[each]}</option>)}</select>
        </label>
        {(["csv", "arrow"] as const).map((form) => (
          <button key={form} type="button" disabled={!whole} onClick={attempt(async () => save(`${table}.${form}`, form === "csv" ? "text/csv" : "application/vnd.apache.arrow.file", await writeTable(session, choice, rows, table, form)))}>{t[form]}</button>
        ))}
      </div>
      <div class="buttons">
        <button type="button" onClick={() => { const svg = picture(); if (svg) save("scatter.svg", "image/svg+xml", pictureText(svg)); }}>{t.svg}</button>
        <button type="button" onClick={attempt(async () => { const svg = picture(); if (svg) save("scatter.png", "image/png", await toPng(svg)); })}>{t.png}</button>
        {choice.source.kind === "setup" && (
          <button type="button" onClick={attempt(async () => {
            const { text } = await session.desk.ask<{ text: string }>({ do: "trace-text", name: traceName(choice.trace) });
            save(traceName(choice.trace), "text/plain", text);
          })}>{t.trace}</button>
        )}
      </div>
      <div class="buttons">
        <label class="inline">{t.of}{" "}
          <select value={chosen} onChange={(event) => setLabel(event.currentTarget.value)}>{labels.map((each) => <option key={each}>{each}</option>)}</select>
        </label>
        <button type="button" disabled={!variant} onClick={attempt(async () => {
          const toml = await session.toml(variant!.what);
          // The page's first seed, in place of the setup's usual one.
          save("scenario.toml", "application/toml", choice.source.kind === "setup" ? toml.replace(/^seed = \d+$/m, `seed = ${choice.seed}`) : toml);
        })}>{t.toml}</button>
        <button type="button" disabled={!row?.outcome || row.draft} onClick={() => save(`${file}.json`, "application/json", `${row!.outcome}\n`)}>{t.outcome}</button>
      </div>
    </div>
  );
}
