// The whole page.
import registryText from "virtual:registry";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Charts, chartsOf, stateNames } from "./charts";
import { Claims } from "./claims";
import { Panel, Select, Slider } from "./controls";
import { colourClass, outline, shapeOf } from "./looks";
import { traceName, usual, type Choice, type NumberField } from "./model";
import { fromLink, isLink, toLink } from "./permalink";
import { Scatter } from "./scatter";
import { Option, SchemesPanel } from "./schemes";
import { Session, type Opened, type Registry, type Shown } from "./session";
import { Share } from "./share";
import { stories } from "./stories";
import { texts, type StoryName } from "./texts";
import { TracePanel } from "./trace";
import { isWhole, median, type Decision, type Ratio, type Row, type Run } from "./results";
import { Watch } from "./watch";

const tabs = ["compare", "watch", "stories", "claims"] as const;
type Tab = (typeof tabs)[number];

/** How many schemes are drawn over time unless somebody asks for more. */
const mostDrawn = 6;

/** Everything that can be named: what the simulator itself says of it, asked when the page was built. */
const registry = JSON.parse(registryText) as Registry;

/** Whether all that was asked for is shown: tests wait for it. */
function settled(yes: boolean): void {
  document.documentElement.dataset.settled = yes ? "yes" : "no";
}

/** The worker pools, begun before the first picture of the page. */
const session = Session.start();

const search = new URLSearchParams(location.search);
const embedded = search.get("embed") === "watch";
/** What is shown where the address holds no setup. */
const beginning = embedded ? stories.bits.choice : usual;

export function App() {
  const [choice, setChoice] = useState<Choice | undefined>(() => (isLink(location.hash) ? undefined : structuredClone(beginning)));
  const [shown, setShown] = useState<Shown>();
  const [opened, setOpened] = useState<Opened>();
  const [rows, setRows] = useState<Row[]>([]);
  const [working, setWorking] = useState(false);
  const [fault, setFault] = useState("");
  const [tab, setTab] = useState<Tab>(embedded ? "watch" : "compare");
  const [story, setStory] = useState<StoryName>();
  const [at, setAt] = useState(embedded ? 4.4 : 2);
  const [theme, setTheme] = useState(systemTheme());
  const files = useRef(new Map<string, Uint8Array>());
  /** The end of the address that the page has read or written last. */
  const known = useRef(location.hash);

  useEffect(() => {
    const start = async () => {
      let first = beginning;
      try {
        first = (await fromLink(location.hash)) ?? first;
      } catch (error) {
        setFault(texts.badLink((error as Error).message));
      }
      if (first.trace.kind === "file") {
        setFault(texts.lostTrace(first.trace.name));
        first = { ...first, trace: usual.trace };
      }
      setChoice(structuredClone(first));
    };
    if (isLink(location.hash)) start().catch((error: Error) => setFault(error.message));
  }, []);

  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setTheme(systemTheme());
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  useEffect(() => { document.documentElement.dataset.theme = theme; }, [theme]);

  // An address that changes while the page is open.
  useEffect(() => {
    const changed = () => {
      const hash = location.hash;
      if (hash === known.current) return;
      known.current = hash;
      settled(false);
      fromLink(hash).then(
        (next) => setChoice(next ?? structuredClone(usual)),
        (error: Error) => {
          settled(true);
          setFault(texts.badLink(error.message));
        },
      );
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);

  // Whatever changes, everything follows; while a slider moves, only the newest counts.
  useEffect(() => {
    if (!choice) return;
    let wanted = true;
    settled(false);
    const timer = setTimeout(() => {
      const go = async () => {
        if (choice.source.kind === "setup") {
          const described = session.trace(choice.trace, choice.trace.kind === "file" ? files.current.get(choice.trace.name) : undefined);
          const show = described.then((shown) => { if (wanted) setShown(shown); });
          // What is embedded every worker knows: its description is no reason to wait.
          if (choice.trace.kind !== "embedded") await show;
          else show.catch(() => undefined);
          if (!wanted) return;
        }
        const next = await session.open(choice);
        if (!wanted) return;
        if (choice.source.kind === "claim" && next.variants.length === 0) {
          setFault(texts.claims.nothing(choice.source.id));
        }
        setOpened(next);
        await session.run(choice, next, (rows, working) => {
          if (!wanted) return;
          setRows(rows);
          setWorking(working);
        });
        if (wanted) settled(true);
      };
      go().catch((error: Error) => {
        if (!wanted) return;
        setFault(error.message);
        setWorking(false);
        settled(true);
      });
    }, 15);
    return () => { wanted = false; clearTimeout(timer); };
  }, [choice]);

  // The address follows when the sliders rest: browsers allow a hundred changes in half a minute.
  useEffect(() => {
    if (!choice || embedded) return;
    let wanted = true;
    const timer = setTimeout(() => {
      void toLink(choice).then((hash) => {
        // Not over an address that somebody has just given.
        if (!wanted || location.hash !== known.current) return;
        known.current = hash;
        history.replaceState(null, "", hash || location.pathname + location.search);
      });
    }, 300);
    return () => { wanted = false; clearTimeout(timer); };
  }, [choice]);

  const change = (changed: Partial<Choice>) => {
    settled(false);
    setFault("");
    setChoice((before) => before && { ...before, ...changed });
  };
  const open = (next: Choice, where: Tab, name?: StoryName, time = 2) => {
    settled(false);
    setFault("");
    setStory(name);
    setChoice(structuredClone(next));
    setTab(where);
    setAt(time);
    scrollTo(0, 0);
  };

  if (embedded) {
    return (
      <main class="embedded">
        {fault && <Fault text={fault} close={() => setFault("")} />}
        {choice ? <Watch session={session} choice={choice} opened={opened} rows={rows} theme={theme} at={at} embedded /> : !fault && <p>{texts.starting}</p>}
      </main>
    );
  }

  return (
    <>
      <a class="skip" href="#results" onClick={(event) => { event.preventDefault(); document.getElementById("results")?.focus(); }}>{texts.skip}</a>
      <header class="page">
        <div class="brand">
          <img src="icon.svg" alt="" width={36} height={36} />
          <div><h1>{texts.title}</h1><p>{texts.subtitle}</p></div>
        </div>
        <nav aria-label={texts.title}>
          {tabs.map((each) => <button key={each} type="button" aria-current={tab === each ? "page" : undefined} onClick={() => setTab(each)}>{texts.tabs[each]}</button>)}
          <button type="button" class="theme" aria-label={texts.theme} title={texts.theme} onClick={() => setTheme(theme === "dark" ? "light" : "dark")}>◐</button>
        </nav>
      </header>
      {fault && <Fault text={fault} close={() => setFault("")} />}
      {!choice ? (
        <main id="results" tabIndex={-1} class="starting">{!fault && <p role="status">{texts.starting}</p>}</main>
      ) : tab === "stories" ? (
        <main id="results" tabIndex={-1}><Stories open={(name) => open(stories[name].choice, stories[name].tab, name, stories[name].at_s)} /></main>
      ) : tab === "claims" ? (
        <main id="results" tabIndex={-1}><Claims open={(file, id) => open({ ...usual, source: { kind: "claim", file, id } }, "compare")} /></main>
      ) : (
        <div class="columns">
          <aside id="controls" aria-label={texts.setup.heading}>
            <Controls
              choice={choice} registry={registry} shown={shown} opened={opened} change={change} reset={() => open(usual, tab)}
              toText={async () => {
                const what = opened?.variants[0]?.what;
                if (!what) return;
                try {
                  change({ source: { kind: "text", text: await session.toml(what) } });
                } catch (error) {
                  setFault((error as Error).message);
                }
              }}
              file={(name, bytes) => {
                // An embedded trace keeps its name.
                const free = registry.traces.some((trace) => trace.name === name) ? texts.trace.own(name) : name;
                session.trace({ kind: "file", name: free }, bytes).then(
                  () => { files.current.set(free, bytes); change({ trace: { kind: "file", name: free } }); },
                  (error: Error) => setFault(error.message),
                );
              }}
            />
          </aside>
          <main id="results" tabIndex={-1}>
            <button type="button" class="jump" onClick={() => document.getElementById("controls")?.scrollIntoView()}>{texts.setup.jump} ↓</button>
            {story && <StoryBox name={story} close={() => setStory(undefined)} watch={() => { setAt(stories[story].at_s ?? 4); setTab("watch"); }} />}
            {tab === "watch" ? (
              <Panel title={texts.watch.heading}><Watch session={session} choice={choice} opened={opened} rows={rows} theme={theme} at={at} embedded={false} /></Panel>
            ) : (
              <Results choice={choice} rows={rows} opened={opened} working={working} theme={theme} session={session} failed={setFault} />
            )}
          </main>
        </div>
      )}
      <footer class="page"><p>{texts.footer(registry.version)} {texts.tagline}</p></footer>
    </>
  );
}

function systemTheme(): string {
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Whether the window is a phone's. */
function useNarrow(): boolean {
  const query = useMemo(() => matchMedia("(max-width: 640px)"), []);
  const [narrow, setNarrow] = useState(query.matches);
  useEffect(() => {
    const changed = () => setNarrow(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, [query]);
  return narrow;
}

/** Returns the list of the last time while its values are the same. */
function useSame<T>(list: T[]): T[] {
  const last = useRef(list);
  if (list.length !== last.current.length || list.some((value, index) => value !== last.current[index])) last.current = list;
  return last.current;
}

function Fault({ text, close }: { text: string; close(): void }) {
  return (
    <div class="fault" role="alert">
      <p>{text}</p>
      <button type="button" class="small" onClick={close}>{texts.dismiss}</button>
    </div>
  );
}

function Controls({ choice, registry, shown, opened, change, reset, toText, file }: {
  choice: Choice; registry: Registry; shown: Shown | undefined; opened: Opened | undefined; change(changed: Partial<Choice>): void; reset(): void; toText(): void; file(name: string, bytes: Uint8Array): void;
}) {
  const t = texts.setup;
  const slider = (field: NumberField, options: { log?: boolean; step?: number } = {}) => (
    <Slider label={t[field]} field={field} value={choice[field]} change={(value) => change({ [field]: value })} {...options} />
  );
  if (choice.source.kind !== "setup") {
    const claim = choice.source.kind === "claim" ? choice.source : undefined;
    return (
      <Panel title={claim ? t.claim(claim.id) : t.heading}>
        {claim ? <p>{opened?.title}</p> : <p>{t.text}</p>}
        {opened?.note && <p class="soft">{opened.note}</p>}
        {opened?.stand_ins && opened.stand_ins.length > 0 && <p class="soft">{t.standIns(opened.stand_ins)}</p>}
        {choice.source.kind === "text" && <Editor key={choice.source.text} text={choice.source.text} run={(text) => change({ source: { kind: "text", text } })} />}
        <div class="buttons">
          {claim && <button type="button" onClick={toText}>{t.edit}</button>}
          <button type="button" onClick={() => change({ source: { kind: "setup" } })}>{t.back}</button>
        </div>
      </Panel>
    );
  }
  const application = registry.applications.find((entry) => entry.name === choice.traffic.kind);
  return (
    <>
      <Panel title={texts.trace.heading}>
        <TracePanel choice={choice} registry={registry} shown={shown} changed={(trace) => change({ trace })} file={file} />
        <label class="check"><input type="checkbox" checked={choice.random_offset} onChange={(event) => change({ random_offset: event.currentTarget.checked })} /> {texts.trace.random}</label>
      </Panel>
      <Panel title={texts.schemes.heading}><SchemesPanel schemes={choice.schemes} registry={registry} changed={(schemes) => change({ schemes })} /></Panel>
      <Panel title={t.heading} extra={<button type="button" class="small" onClick={reset}>{t.reset}</button>}>
        <div class="fields">
          {slider("rtt_ms", { log: true })}
          {slider("buffer_pkts", { log: true })}
          {slider("duration_s")}
          {slider("runs")}
          {slider("flows")}
          <Select label={t.against} value={choice.against} options={[["", t.noCompetitor], ...registry.schemes.filter((entry) => !entry.scheme.includes("+") || entry.scheme.endsWith("+")).map((entry): [string, string] => [entry.scheme, entry.scheme])]} change={(against) => change({ against })} />
          {choice.against && slider("against_flows")}
        </div>
        <details>
          <summary>{t.more}</summary>
          <div class="fields">
            <Select label={t.traffic} value={choice.traffic.kind ?? ""} options={registry.applications.map((entry) => entry.name)} change={(kind) => change({ traffic: { kind, ...needed[kind] } })} />
            {application && application.parameters.length > 0 && (
              <fieldset class="options">
                <legend>{application.summary}</legend>
                {application.parameters.map((parameter) => (
                  <Option
                    key={parameter.name} parameter={parameter} value={choice.traffic[parameter.name] ?? ""}
                    set={(value) => {
                      const traffic = { ...choice.traffic };
                      if (value) traffic[parameter.name] = value;
                      else delete traffic[parameter.name];
                      change({ traffic });
                    }}
                  />
                ))}
              </fieldset>
            )}
            {slider("loss_percent", { step: 0.01 })}
            {slider("ack_loss_percent", { step: 0.1 })}
            {slider("ack_every")}
            {slider("reverse_mbps", { log: true, step: 0.1 })}
            {slider("seed")}
          </div>
          <button type="button" class="small" onClick={toText}>{t.edit}</button>
        </details>
      </Panel>
    </>
  );
}

/** Numbers of applications that have no default. */
const needed: Record<string, Record<string, string>> = {
  size: { size: "5MB" },
  "on-off": { on: "2s", off: "2s" },
  "short-flows": { load: "2Mbps", size: "20kB" },
  "rate-limited": { rate: "1Mbps" },
  phases: { phases: "5s 200kbps, 20s backlogged" },
  "request-response": { request: "500B", response: "100kB" },
};

function Editor({ text, run }: { text: string; run(text: string): void }) {
  const [edited, setEdited] = useState(text);
  return (
    <div class="editor">
      <textarea rows={24} spellcheck={false} aria-label={texts.setup.textLabel} maxLength={100_000} value={edited} onInput={(event) => setEdited(event.currentTarget.value)} />
      <button type="button" class="primary" onClick={() => run(edited)}>{texts.setup.runText}</button>
    </div>
  );
}

function Stories({ open }: { open(name: StoryName): void }) {
  const t = texts.stories;
  return (
    <div class="stories">
      <h2>{t.heading}</h2>
      <p>{t.intro}</p>
      <ol>
        {(Object.keys(stories) as StoryName[]).map((name) => (
          <li key={name}>
            <h3>{t.list[name].title}</h3>
            {t.list[name].text.map((line) => <p key={line}>{line}</p>)}
            <button type="button" class="primary" aria-label={`${t.open}: ${t.list[name].title}`} onClick={() => open(name)}>{t.open}</button>
          </li>
        ))}
      </ol>
    </div>
  );
}

function StoryBox({ name, close, watch }: { name: StoryName; close(): void; watch(): void }) {
  const story = texts.stories.list[name];
  return (
    <section class="panel story">
      <header><h2>{story.title}</h2><span><button type="button" class="small" onClick={watch}>{texts.stories.watch}</button><button type="button" class="small close" aria-label={texts.dismiss} onClick={close}>×</button></span></header>
      {story.text.map((line) => <p key={line}>{line}</p>)}
      <p class="look">{story.look}</p>
    </section>
  );
}

function Results({ choice, rows, opened, working, theme, session, failed }: {
  choice: Choice; rows: Row[]; opened: Opened | undefined; working: boolean; theme: string; session: Session; failed(message: string): void;
}) {
  const t = texts.results;
  const [chosen, setChosen] = useState<Record<string, boolean>>({});
  const [link, setLink] = useState(0);
  const [state, setState] = useState("");
  const picture = useRef<SVGSVGElement | null>(null);
  const narrow = useNarrow();
  const drawn = rows.filter((row, index) => chosen[row.label] ?? index < mostDrawn);
  // Other seeds that end change no line.
  const lines = useSame(drawn.flatMap((row) => [row.label, row.index, row.series]));
  const states = useMemo(() => stateNames(drawn), [lines]);
  const wanted = states.includes(state) ? state : (["load_factor", "owqd_ms", "w_nonabc_bytes"].find((name) => states.includes(name)) ?? states.find((name) => name !== "cwnd_bytes") ?? "");
  const links = drawn[0]?.series?.links.map((each) => each.name) ?? [];
  const shownLink = link < links.length ? link : 0;
  const charts = useMemo(() => chartsOf(drawn, shownLink, wanted), [lines, shownLink, wanted]);
  const draft = rows.some((row) => row.draft && row.run);
  const took = rows.find((row) => row.took_ms !== undefined)?.took_ms;
  const done = rows.reduce((sum, row) => sum + (row.run ? 1 : 0) + row.cloud.length, 0);
  const decision = useDecision(choice, rows, working, session);
  return (
    <>
      {decision && <Panel title={texts.decision.heading}><Deploy decision={decision} /></Panel>}
      <Panel title={t.heading} extra={<span class="soft" role="status">{working ? (draft ? t.first : t.working) : took !== undefined && t.took(done, took)}</span>}>
        {opened && opened.variants.length === 0 && choice.source.kind === "setup" && <p>{t.nothing}</p>}
        {rows.filter((row) => row.error).map((row) => <p key={row.label} class="error" role="alert">{row.label}: {row.error}</p>)}
        <div class="two">
          <figure>
            <Scatter rows={rows} svg={(element) => { picture.current = element; }} narrow={narrow} />
            <figcaption class="soft">{t.scatterHelp}</figcaption>
          </figure>
          <Numbers rows={rows} chosen={drawn} toggle={(label, on) => setChosen({ ...chosen, [label]: on })} />
        </div>
      </Panel>
      <Panel title={t.over} extra={<span class="soft">{t.overHelp}</span>}>
        <div class="bar">
          {links.length > 1 && <Select label={t.link} value={String(shownLink)} options={links.map((name, index): [string, string] => [String(index), name])} change={(value) => setLink(Number(value))} />}
          {states.length > 0 && <Select label={t.chooseState} value={wanted} options={states} change={setState} />}
        </div>
        {charts.length > 0 && <Charts charts={charts} theme={theme} label={traceName(choice.trace)} />}
      </Panel>
      <Panel title={texts.share.heading}><Share choice={choice} rows={rows} opened={opened} session={session} picture={() => picture.current} failed={failed} /></Panel>
    </>
  );
}

/** What to deploy, once all runs of a setup have ended. What was said of another setup stays until then. */
function useDecision(choice: Choice, rows: Row[], working: boolean, session: Session): Decision | undefined {
  const [decision, setDecision] = useState<Decision>();
  const whole = choice.source.kind === "setup" && !working && rows.length > 1 && rows.every((row) => isWhole(row) && !row.old);
  useEffect(() => {
    // What has ended with nothing to choose from, or with a run that failed, has no answer.
    if (choice.source.kind !== "setup" || (!working && !whole)) setDecision(undefined);
    if (!whole) return;
    let wanted = true;
    // Without an answer the page has no such panel; the runs themselves are shown.
    session.decide(rows).then((next) => { if (wanted) setDecision(next ?? undefined); }, () => { if (wanted) setDecision(undefined); });
    return () => { wanted = false; };
  }, [whole, working, rows]);
  return decision;
}

function Deploy({ decision }: { decision: Decision }) {
  const t = texts.decision;
  const { today, choices } = decision;
  const ratio = (it: Ratio | null) => (it ? <>{it.value.toFixed(2)}{it.interval95 && <small> {it.interval95.map((end) => end.toFixed(2)).join(" – ")}</small>}</> : "–");
  const beside = (is: boolean, it: Ratio | null) => (is ? "1" : ratio(it));
  const heads = [t.columns.change, t.columns.best, t.columns.next, t.columns.ahead, ...(today ? [t.throughput(today), t.p95(today)] : [])];
  return (
    <>
      <p class="soft">{t.help}</p>
      <div class="scroll" tabIndex={0} role="region" aria-label={t.table}>
        <table class="deploy">
          <thead><tr>{heads.map((name) => <th key={name} scope="col">{name}</th>)}</tr></thead>
          <tbody>
            {choices.map(({ change, best, next, ahead, throughput, p95 }) => (
              <tr key={change}>
                <th scope="row">{t.changes[change]}</th>
                <td>{best.scheme}{best.link_rate && " †"}</td>
                <td>{next?.scheme ?? "–"}</td>
                <td>{ratio(ahead)}</td>
                {today && <td>{beside(best.scheme === today, throughput)}</td>}
                {today && <td>{beside(best.scheme === today, p95)}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {choices.some(({ best }) => best.link_rate) && <p class="soft">{t.linkRate}</p>}
    </>
  );
}

function Numbers({ rows, chosen, toggle }: { rows: Row[]; chosen: Row[]; toggle(label: string, on: boolean): void }) {
  const t = texts.results;
  const c = t.columns;
  const middle = (row: Row, value: (run: Run) => number | null | undefined, digits: number) => {
    if (!row.run) return "…";
    const values = [row.run, ...row.cloud].map(value).filter((each): each is number => typeof each === "number");
    return values.length > 0 ? median(values).toFixed(digits) : "–";
  };
  const brakes = ({ marks }: Run) => (marks.accelerate + marks.brake > 0 ? (100 * marks.brake) / (marks.accelerate + marks.brake) : null);
  const all: [string, (run: Run) => number | null | undefined, number][] = [
    [c.throughput, (run) => run.throughput_mbps, 2],
    [c.utilization, (run) => 100 * run.utilization, 0],
    [c.p95, (run) => run.queueing_delay_ms?.p95, 0],
    [c.loss, (run) => run.loss_percent, 2],
    [c.jain, (run) => run.jain, 2],
    [c.marks, brakes, 0],
  ];
  // What no scheme has is no column.
  const columns = all.filter(([, value], index) => index < 4 || rows.some((row) => row.run && typeof value(row.run) === "number"));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={t.table}>
      <table class="numbers">
        <thead><tr>{[c.scheme, ...columns.map(([name]) => name)].map((name) => <th key={name} scope="col">{name}</th>)}</tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.label} class={row.draft ? "draft" : ""}>
              <th scope="row">
                <label class={colourClass(row.index)}>
                  <input type="checkbox" aria-label={texts.schemes.show(row.label)} checked={chosen.includes(row)} onChange={(event) => toggle(row.label, event.currentTarget.checked)} />
                  <svg class="mark" viewBox="-10 -10 20 20" aria-hidden="true"><path d={outline(shapeOf(row.index), 6.5)} /></svg>
                  {row.label}
                </label>
              </th>
              {columns.map(([name, value, digits]) => <td key={name}>{middle(row, value, digits)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
