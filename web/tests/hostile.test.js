// Two hundred kinds of hostile links and traces: each gives a message or is harmless; the page stays alive.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, it } from "node:test";
import { deflateRawSync } from "node:zlib";
import { launch, open, serve, settled } from "./drive.js";

const dist = fileURLToPath(new URL("../dist/", import.meta.url));
let browser;
let server;
before(async () => { [browser, server] = [await launch(), await serve(dist)]; });
after(async () => { await browser?.close(); server?.close(); });

const pack = (text) => `#s=${deflateRawSync(text).toString("base64url")}`;
const link = (value) => pack(JSON.stringify(value));
const markup = "<img src=x onerror=window.harmed=1><script>window.harmed=1</script>";

/** A small generator of numbers, the same every time. */
function* numbers(seed) {
  for (let state = seed; ;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

/** Addresses whose setup cannot be read. */
function badLinks() {
  const fields = ["rtt_ms", "buffer_pkts", "duration_s", "seed", "runs", "flows", "against_flows", "loss_percent", "ack_loss_percent", "ack_every", "reverse_mbps"];
  const values = [-1, 1e300, "100", null, [], {}, true];
  const links = fields.flatMap((field) => values.map((value) => link({ [field]: value })));
  links.push(
    ...[{ schemes: "abc" }, { schemes: [1] }, { schemes: Array(31).fill("abc") }, { schemes: ["x".repeat(401)] }, { against: {} }, { traffic: [] }, { traffic: { kind: 1 } }].map(link),
    ...[{ trace: null }, { trace: { kind: "drawn", mbps: [], step_s: 1 } }, { trace: { kind: "drawn", mbps: [-1], step_s: 1 } }, { trace: { kind: "drawn", mbps: [1e9], step_s: 1 } }].map(link),
    ...[{ trace: { kind: "drawn", mbps: Array(2001).fill(1), step_s: 1 } }, { trace: { kind: "generator", recipe: "x" } }, { trace: { kind: "url", name: "http://example.org" } }].map(link),
    ...[{ source: { kind: "text" } }, { source: { kind: "claim", file: 1, id: "x" } }, { source: [] }, { random_offset: 1 }, { constructor: 1 }, { unknown: 1 }, { [markup]: 1 }].map(link),
    ...["[]", "null", "1", '"x"', "{", "", '{"rtt_ms":', "\ud800", '{"__proto__":{"harmed":1},"rtt_ms":"x"}'].map(pack),
    "#s=", "#s=!!!!", "#s=AAAA", "#s=%00", `#s=${"A".repeat(70_000)}`, pack(" ".repeat(50_000_000)), pack(`{"schemes":["${"x".repeat(10_000_000)}"]}`),
  );
  return links;
}

/** An address that can be read, with three bytes of it changed: some can still be read. */
function damagedLinks() {
  const links = [];
  const random = numbers(7);
  const good = Buffer.from(link({ rtt_ms: 50, schemes: ["abc", "cubic"], runs: 1, duration_s: 5 }).slice(3), "base64url");
  while (links.length < 15) {
    const bytes = Buffer.from(good);
    for (let i = 0; i < 3; i++) bytes[Math.floor(random.next().value * bytes.length)] = Math.floor(random.next().value * 256);
    links.push(`#s=${bytes.toString("base64url")}`);
  }
  return links;
}

/** Setups that can be read, of something that cannot be run. */
function badSetups() {
  const one = { schemes: ["abc"], runs: 1, duration_s: 5 };
  const schemes = ["", "nosuch", markup, "abc:delta=-1", "abc:delta=1e999s", "abc+dualpi2", "abc:x=1", "cubic+", ":", "cubic:cubic", "../../etc/passwd", "abc\u0000", "‮abc"];
  const text = (value) => ({ source: { kind: "text", text: value } });
  const link_ = '[[link]]\nname = "l"\nrate = "10Gbps"\n';
  const flow = '[[flow]]\ncontroller = "cubic"\npath = ["l"]\n';
  return [
    ...schemes.map((scheme) => ({ ...one, schemes: [scheme] })),
    ...["nosuch", markup, "/etc/passwd", "COM1"].map((name) => ({ ...one, trace: { kind: "embedded", name } })),
    { ...one, trace: { kind: "file", name: markup } },
    { ...one, trace: { kind: "drawn", mbps: [0, 0, 0], step_s: 1 } },
    ...[{}, { cellular: {} }, { about: 1, duration: "9999h", seed: 1, steps: [{ lasts: "1s", rate: "1Tbps" }] }, { about: markup, duration: "60s", seed: 1, steps: [] }, { about: "", duration: "3600s", seed: 1, steps: [{ lasts: "1s", rate: "9Gbps" }] }]
      .map((recipe) => ({ ...one, trace: { kind: "generator", recipe } })),
    ...["nosuch.toml", "../Cargo.toml", markup].map((file) => ({ source: { kind: "claim", file, id: markup } })),
    ...[{ kind: "nosuch" }, { kind: "size", size: "-1MB" }, { kind: markup }, { kind: "short-flows", per_second: "1e12", size: "1B" }, { kind: "video", segment: "0s" }].map((traffic) => ({ ...one, traffic })),
    { ...one, against: markup }, { ...one, against: "cubic+codel" },
    ...["", "x", markup, "[[link]]", "{", '{"link": 1}', "\u0000", "a = ".repeat(20_000), "[".repeat(50_000), link_ + flow.replace('"l"', '"nowhere"')].map(text),
    ...[`duration = "86400s"\n${link_}${flow}`, `${link_}${flow}count = 100000\n`, `${link_}buffer = "0pkt"\n${flow}`, `${link_.replace('rate = "10Gbps"', 'trace = "/etc/passwd"')}${flow}`, `duration = "1e400s"\n${link_}${flow}`].map(text),
  ];
}

/** Files that are no trace, or too much of one. */
function badFiles() {
  const random = numbers(11);
  const noise = (length) => Buffer.from(Array.from({ length }, () => Math.floor(random.next().value * 256)));
  const files = [
    "", "\n", "0", "-1\n", "5\n3\n", "x", markup, "1e9\n", "99999999999999999999\n", "start_s,mbps\n", "0,-5\n", "0,1e99\n", "0,5\n0,5\n", "NaN,NaN\n", "0,five\n", "\ufeff,", "{", "{}", '{"intervals":[]}',
    '{"intervals":[{"sum":{"start":0,"end":1e9,"bits_per_second":1e12}}]}', "0,1000000\n86400,\n", "0,5\n1e9,\n",
  ].map((text) => Buffer.from(text));
  files.push(Buffer.from([0xd4, 0xc3, 0xb2, 0xa1]), Buffer.from([0x0a, 0x0d, 0x0d, 0x0a, 0xff, 0xff, 0xff, 0xff]), Buffer.alloc(1000), Buffer.alloc(21_000_000, "1\n"), Buffer.from("1\n".repeat(6_000_000)));
  for (let i = 0; i < 6; i++) files.push(noise(10 ** (i % 4) * 7));
  return files;
}

/** Opens one address after the other in the page, and returns of each whether it did harm, and the messages. */
const visit = (page, hashes) => page.evaluate(async (hashes) => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const faults = () => [...document.querySelectorAll(".fault, .error")].map((each) => each.textContent).join(" ");
  const seen = [];
  for (const hash of hashes) {
    for (const button of document.querySelectorAll(".fault button")) button.click();
    if (location.hash !== hash) {
      const read = new Promise((done) => addEventListener("hashchange", done, { once: true }));
      location.hash = hash;
      await read;
    }
    const until = performance.now() + 30_000;
    do await frame();
    while (document.documentElement.dataset.settled !== "yes" && performance.now() < until);
    // What it says comes with the next picture.
    for (let i = 0; i < 20 && faults() === ""; i++) await frame();
    const harmed = window.harmed !== undefined || {}.harmed !== undefined || document.querySelector("#app img[src=x]") !== null;
    seen.push({ hash: hash.slice(0, 200), settled: document.documentElement.dataset.settled, harmed, said: faults() });
  }
  return seen;
}, hashes);

it("two hundred kinds of hostile input leave the page alive", async (t) => {
  const small = { schemes: ["abc", "cubic"], runs: 1, duration_s: 5 };
  const { page, context, complaints } = await open(browser, server.address + link(small));
  page.on("dialog", () => complaints.push("a dialog"));
  await settled(page);
  const bad = [...badLinks(), ...badSetups().map(link)];
  for (const { hash, harmed, settled, said } of await visit(page, bad)) {
    assert.deepEqual({ hash, harmed, settled }, { hash, harmed: false, settled: "yes" });
    assert.notEqual(said, "", `${hash} gives a message`);
  }
  const damaged = damagedLinks();
  for (const { hash, harmed, settled } of await visit(page, damaged)) {
    assert.deepEqual({ hash, harmed, settled }, { hash, harmed: false, settled: "yes" });
  }
  await visit(page, [link(small)]);
  await page.getByRole("button", { name: "Your own", exact: true }).click();
  const folder = await mkdtemp(join(tmpdir(), "brakelight-hostile-"));
  const files = badFiles();
  try {
    for (const [index, contents] of files.entries()) {
      await page.evaluate(() => { for (const button of document.querySelectorAll(".fault button")) button.click(); });
      const file = join(folder, `${index}.trace`);
      // Large ones by their path: the browser reads them itself.
      await writeFile(file, contents);
      const given = contents.length > 1000 ? file : { name: `${index}${markup}.trace`, mimeType: "text/plain", buffer: contents };
      await page.locator("input[type=file]").setInputFiles(given);
      await page.locator(".fault, .error").first().waitFor();
      assert.ok(await page.evaluate(() => window.harmed === undefined && document.querySelector("#app img[src=x]") === null), `file ${index}`);
      await rm(file);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
  const kinds = bad.length + damaged.length + files.length;
  t.diagnostic(`${kinds} kinds`);
  assert.ok(kinds >= 200, `${kinds} kinds`);
  // Alive: it answers as if nothing had been.
  await visit(page, [link({ ...small, runs: 2 })]);
  assert.equal(await page.locator(".scatter .point").count(), 2);
  assert.equal(await page.locator(".fault, .error").count(), 0);
  assert.deepEqual(complaints, []);
  await context.close();
});
