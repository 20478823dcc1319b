// Choosing schemes, and their options from the registry.
import { useState } from "preact/hooks";
import { useDraft } from "./controls";
import { colourClass, outline, shapeOf } from "./looks";
import { mostSchemes, usual } from "./model";
import type { Entry, Parameter, Registry } from "./session";
import { texts } from "./texts";

const t = texts.schemes;

interface Parsed { controller: string; queue: string; options: [string, string][] }

/** A scheme's parts, read as the command line reads them: a controller's own name may hold a plus. */
function parse(scheme: string, registry: Registry): Parsed {
  const [name = "", rest = ""] = scheme.split(/:(.*)/s);
  const known = registry.controllers.some((entry) => entry.name === name || entry.aliases.includes(name));
  const plus = known ? -1 : name.lastIndexOf("+");
  const options = rest === "" ? [] : rest.split(",").map((item): [string, string] => {
    const at = item.indexOf("=");
    return at < 0 ? [item, ""] : [item.slice(0, at), item.slice(at + 1)];
  });
  return { controller: plus < 0 ? name : name.slice(0, plus), queue: plus < 0 ? "" : name.slice(plus + 1), options };
}

const write = ({ controller, queue, options }: Parsed) => {
  const name = queue ? `${controller}+${queue}` : controller;
  return options.length > 0 ? `${name}:${options.map(([key, value]) => `${key}=${value}`).join(",")}` : name;
};

const find = (entries: Entry[], name: string) => entries.find((entry) => entry.name === name || entry.aliases.includes(name));

export function SchemesPanel({ schemes, registry, changed }: { schemes: string[]; registry: Registry; changed(schemes: string[]): void }) {
  const [open, setOpen] = useState<string>();
  const [text, setText] = useState("");
  const add = (scheme: string) => {
    const clean = scheme.trim();
    if (clean && clean.length <= 400 && !schemes.includes(clean) && schemes.length < mostSchemes) changed([...schemes, clean]);
    setText("");
  };
  return (
    <>
      <ul class="chips">
        {schemes.map((scheme, index) => (
          <li key={scheme}>
            <div class={`chip ${colourClass(index)}`}>
              <svg class="mark" viewBox="-10 -10 20 20" aria-hidden="true"><path d={outline(shapeOf(index), 6.5)} /></svg>
              <span class="name">{scheme}</span>
              <button type="button" class="small" aria-expanded={open === scheme} aria-label={t.options(scheme)} onClick={() => setOpen(open === scheme ? undefined : scheme)}>{t.optionsShort}</button>
              <button type="button" class="small close" aria-label={t.remove(scheme)} onClick={() => changed(schemes.filter((other) => other !== scheme))}>×</button>
            </div>
            {open === scheme && (
              <Options
                scheme={parse(scheme, registry)} registry={registry}
                changed={(next) => {
                  const written = write(next);
                  if (schemes.includes(written)) return;
                  setOpen(written);
                  changed(schemes.map((other) => (other === scheme ? written : other)));
                }}
              />
            )}
          </li>
        ))}
      </ul>
      <form class="add" onSubmit={(event) => { event.preventDefault(); add(text); }}>
        <input list="known-schemes" value={text} aria-label={t.addLabel} placeholder={t.add} maxLength={400} onInput={(event) => setText(event.currentTarget.value)} />
        <datalist id="known-schemes">
          {registry.schemes.map(({ scheme }) => <option key={scheme} value={scheme} />)}
          {registry.queues.map(({ name }) => <option key={name} value={`cubic+${name}`} />)}
        </datalist>
        <button type="submit" class="small">{t.addButton}</button>
        <button type="button" class="small" onClick={() => changed(registry.schemes.map(({ scheme }) => scheme))}>{t.all}</button>
        <button type="button" class="small" onClick={() => changed([...usual.schemes])}>{t.usual}</button>
      </form>
    </>
  );
}

function Options({ scheme, registry, changed }: { scheme: Parsed; registry: Registry; changed(scheme: Parsed): void }) {
  const controller = find(registry.controllers, scheme.controller);
  const known = registry.schemes.find((entry) => entry.scheme === scheme.controller);
  const queueName = scheme.queue || (known?.queue ?? "droptail").split(":")[0]!;
  const queue = find(registry.queues, queueName);
  const parts: [string, Entry | undefined][] = [[t.parts.controller, controller], [t.parts.queue, queue]];
  const set = (name: string, value: string) => {
    const options = scheme.options.filter(([other]) => other !== name);
    if (value.trim() !== "") options.push([name, value.trim().replaceAll(",", "")]);
    changed({ ...scheme, options });
  };
  const all = parts.flatMap(([, entry]) => entry?.parameters ?? []);
  if (all.length === 0) return <p class="soft">{t.none}</p>;
  return (
    <div class="options">
      {parts.map(([part, entry]) => entry && entry.parameters.length > 0 && (
        <fieldset key={part}>
          <legend>{part}: {entry.name}</legend>
          <p class="soft">{entry.summary}</p>
          {entry.parameters.map((parameter) => (
            <Option key={parameter.name} parameter={parameter} value={scheme.options.find(([name]) => name === parameter.name)?.[1] ?? ""} set={(value) => set(parameter.name, value)} />
          ))}
        </fieldset>
      ))}
    </div>
  );
}

export function Option({ parameter, value, set }: { parameter: Parameter; value: string; set(value: string): void }) {
  const valid = [parameter.range || parameter.unit, parameter.source].filter((text) => text && text !== "any").join(" · ");
  const [draft, setDraft] = useDraft(value);
  return (
    <label class="option">
      <span class="name">{parameter.name}</span>
      <input value={draft} placeholder={parameter.default || parameter.unit} maxLength={100} onInput={(event) => setDraft(event.currentTarget.value)} onChange={(event) => set(event.currentTarget.value)} />
      <span class="soft">{parameter.meaning} <span class="valid">{valid}</span></span>
    </label>
  );
}
