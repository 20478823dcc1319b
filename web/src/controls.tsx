// Small parts of forms.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useMemo, useState } from "preact/hooks";
import { ranges, type NumberField } from "./model";

/** A text that is being typed: results that arrive meanwhile do not take it away. */
export function useDraft(value: string): [string, (text: string) => void] {
  const [draft, setDraft] = useState(value);
  useEffect(() => setDraft(value), [value]);
  return [draft, setDraft];
}

/** A slider and a number, which show the same. A logarithmic slider covers decades. */
export function Slider({ label, field, value, change, log, step }: {
  label: string; field: NumberField; value: number; change(value: number): void; log?: boolean; step?: number;
}) {
  const id = useId();
  const [low, high] = ranges[field];
  const [draft, setDraft] = useDraft(String(value));
  const whole = (step ?? 1) >= 1;
  const tidy = (number: number) => {
    const near = whole ? Math.round(number) : Number(number.toFixed(2));
    return Math.min(Math.max(near, low), high);
  };
  // A logarithmic slider moves over round numbers, each once, so that every key press changes something.
  const stops = useMemo(() => {
    if (!log) return [];
    const all = Array.from({ length: 201 }, (_, place) => tidy(Number((low * (high / low) ** (place / 200)).toPrecision(2))));
    return [...new Set(all)];
  }, [low, high, log]);
  const nearest = (number: number) => {
    const above = stops.findIndex((stop) => stop >= number);
    return above < 0 ? stops.length - 1 : above;
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        type="range" aria-label={label} min={log ? 0 : low} max={log ? stops.length - 1 : high} step={log ? 1 : (step ?? 1)} value={log ? nearest(value) : value}
        aria-valuetext={String(value)}
        onInput={(event) => {
          const place = Number(event.currentTarget.value);
          const next = log ? (stops[place] ?? value) : tidy(place);
          setDraft(String(next));
          change(next);
        }}
      />
      <input
        id={id} type="number" min={low} max={high} step={whole ? 1 : "any"} value={draft}
        onInput={(event) => setDraft(event.currentTarget.value)}
        onChange={(event) => {
          const number = Number(event.currentTarget.value);
          const next = event.currentTarget.value !== "" && Number.isFinite(number) ? tidy(number) : value;
          setDraft(String(next));
          change(next);
        }}
      />
    </div>
  );
}

/** A slider with a range of its own. */
export function Free({ label, low, high, step, value, change }: { label: string; low: number; high: number; step: number; value: number; change(value: number): void }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input id={id} type="range" min={low} max={high} step={step} value={value} onInput={(event) => change(Number(event.currentTarget.value))} />
      <output for={id}>{Number(value.toPrecision(4))}</output>
    </div>
  );
}

export function Select({ label, value, options, change }: {
  label: string; value: string; options: (string | [string, string])[]; change(value: string): void;
}) {
  const id = useId();
  return (
    <div class="field select">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => change(event.currentTarget.value)}>
        {options.map((option) => {
          const [key, text] = typeof option === "string" ? [option, option] : option;
          return <option key={key} value={key} selected={key === value}>{text}</option>;
        })}
      </select>
    </div>
  );
}

export function Panel({ title, children, extra, id }: { title: string; children: ComponentChildren; extra?: ComponentChildren; id?: string }) {
  return (
    <section class="panel" id={id}>
      <header><h2>{title}</h2>{extra}</header>
      {children}
    </section>
  );
}
