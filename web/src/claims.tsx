// The papers' claims, with the verdicts that the book keeps.
import { useEffect, useState } from "preact/hooks";
import { Select } from "./controls";
import { texts } from "./texts";

const t = texts.claims;

interface Claim { id: string; claim: string; paper: string; measured: string; verdict: string; note: string }
interface Experiment { id: string; file: string; title: string; claims: Claim[] }

declare global {
  interface Window {
    brakelightClaims?: Experiment[];
  }
}

/** Loads the claims: a script beside the page, since files cannot be fetched from a folder. */
function load(): Promise<Experiment[]> {
  return new Promise((resolve, reject) => {
    if (window.brakelightClaims) return resolve(window.brakelightClaims);
    const script = document.createElement("script");
    script.src = "claims.js";
    script.onload = () => (window.brakelightClaims ? resolve(window.brakelightClaims) : reject(new Error(t.missing)));
    script.onerror = () => reject(new Error(t.missing));
    document.head.append(script);
  });
}

export function Claims({ open }: { open(file: string, id: string): void }) {
  const [experiments, setExperiments] = useState<Experiment[]>([]);
  const [fault, setFault] = useState("");
  const [search, setSearch] = useState("");
  const [verdict, setVerdict] = useState("");
  useEffect(() => { load().then(setExperiments, (error: Error) => setFault(error.message)); }, []);
  const wanted = search.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (experiment: Experiment, claim: Claim) => {
    const text = `${experiment.id} ${experiment.title} ${claim.id} ${claim.claim} ${claim.note}`.toLowerCase();
    return (verdict === "" || claim.verdict === verdict) && wanted.every((word) => text.includes(word));
  };
  const shown = experiments.map((experiment) => ({ ...experiment, claims: experiment.claims.filter((claim) => fits(experiment, claim)) })).filter((experiment) => experiment.claims.length > 0);
  const count = (list: Experiment[]) => list.reduce((sum, { claims }) => sum + claims.length, 0);
  return (
    <div class="claims">
      <h2>{t.heading}</h2>
      <p>{t.intro}</p>
      {fault && <p class="error" role="alert">{fault}</p>}
      <div class="bar">
        <div class="field"><label for="claim-search">{t.search}</label><input id="claim-search" type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} /></div>
        <Select label={t.verdict} value={verdict} options={[["", t.all], ...Object.entries(t.verdicts)]} change={setVerdict} />
        <p class="soft" role="status">{t.count(count(shown), count(experiments))}</p>
      </div>
      {shown.map((experiment) => (
        <details key={experiment.id} open={wanted.length > 0 && shown.length <= 6}>
          <summary>
            <strong>{experiment.id}</strong> <span>{experiment.title}</span>
            <span class="tally">{Object.keys(t.verdicts).map((key) => {
              const many = experiment.claims.filter((claim) => claim.verdict === key).length;
              return many > 0 && <span key={key} class={`verdict ${key}`}>{many} {t.verdicts[key]}</span>;
            })}</span>
          </summary>
          <button type="button" class="primary small" aria-label={t.openLabel(experiment.id)} onClick={() => open(experiment.file, experiment.id)}>{t.open}</button>
          <ul>
            {experiment.claims.map((claim, index) => (
              <li key={index}>
                <span class={`verdict ${claim.verdict}`}>{t.verdicts[claim.verdict] ?? claim.verdict}</span> {claim.claim}
                <p class="soft">
                  {claim.paper && <span>{t.paper}: {claim.paper}. </span>}
                  {claim.measured && <span>{t.measured}: {shorten(claim.measured)}. </span>}
                  {claim.note && <span>{t.note}: {shorten(claim.note)}</span>}
                </p>
              </li>
            ))}
          </ul>
        </details>
      ))}
    </div>
  );
}

const shorten = (text: string) => (text.length > 300 ? `${text.slice(0, 300)}…` : text);
