// The page in Chromium: what one can do with it, from a server and from a folder, by mouse and by keyboard.
import assert from "node:assert/strict";
import { copyFile, cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, describe, it } from "node:test";
import { deflateRawSync, gzipSync } from "node:zlib";
import { launch, open, serve, settled } from "./drive.js";

const dist = fileURLToPath(new URL("../dist/", import.meta.url));
const pictures = process.env.BRAKELIGHT_PICTURES;
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 };

let browser;
let server;
before(async () => { [browser, server] = [await launch(), await serve(dist)]; });
after(async () => { await browser?.close(); server?.close(); });

/** The usual setup with one seed: quicker. */
const single = `#s=${deflateRawSync(JSON.stringify({ runs: 1, duration_s: 30 })).toString("base64url")}`;

/** Opens the page, runs `body`, and holds it to have complained about nothing. */
async function on(options, body, address = server.address + single) {
  const { page, context, complaints } = await open(browser, address, options);
  try {
    await settled(page);
    await body(page, context);
    assert.deepEqual(complaints, []);
  } finally {
    await context.close();
  }
}

const tab = (page, name) => page.getByRole("navigation").getByRole("button", { name, exact: true }).click();
const cell = (page, scheme, column) => page.locator(".numbers tbody tr").filter({ has: page.getByRole("checkbox", { name: `Show ${scheme} over time`, exact: true }) }).locator("td").nth(column).innerText();
const saved = async (page, name) => {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name, exact: true }).click()]);
  return readFile(await download.path());
};
const savedText = async (page, name) => String(await saved(page, name));
/** A table in both forms: its text, and its bytes in Arrow. */
const savedTable = async (page, name) => {
  await page.getByLabel("Table", { exact: true }).selectOption(name);
  return [await savedText(page, "Table (CSV)"), await saved(page, "Table (Arrow)")];
};
const fits = (page) => page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth);

/** A capture of raw IP: every 10 ms a large packet from 10.0.0.1 and a small one back. */
function bothWays() {
  const head = Buffer.alloc(24);
  head.writeUInt32LE(0xa1b2c3d4, 0);
  head.writeUInt16LE(2, 4);
  head.writeUInt16LE(4, 6);
  head.writeUInt32LE(65_535, 16);
  head.writeUInt32LE(101, 20);
  const packets = Array.from({ length: 400 }, (_, index) => {
    const back = index % 2;
    const bytes = Buffer.alloc(16 + 20);
    const micros = Math.floor(index / 2) * 10_000;
    bytes.writeUInt32LE(Math.floor(micros / 1e6), 0);
    bytes.writeUInt32LE(micros % 1e6, 4);
    bytes.writeUInt32LE(20, 8);
    const length = back ? 60 : 1500;
    bytes.writeUInt32LE(length, 12);
    bytes[16] = 0x45;
    bytes.writeUInt16BE(length, 18);
    bytes[25] = 17;
    bytes.set([10, 0, 0, 1 + back, 10, 0, 0, 2 - back], 28);
    return bytes;
  });
  return Buffer.concat([head, ...packets]);
}

describe("the page", { concurrency: 2 }, () => {
  it("shows the usual comparison from a server, and is small", async (t) => {
    const files = await readdir(dist);
    const bytes = await Promise.all(files.map(async (file) => gzipSync(await readFile(dist + file)).length));
    const all = bytes.reduce((sum, each) => sum + each, 0);
    t.diagnostic(`${all} bytes compressed`);
    assert.ok(all < 1_500_000, `${all} bytes`);
    const began = Date.now();
    const { page, context, complaints } = await open(browser, server.address);
    await page.locator(".scatter .point").first().waitFor();
    t.diagnostic(`first view after ${Date.now() - began} ms`);
    await settled(page);
    assert.equal(await page.locator(".scatter .point").count(), 4);
    assert.equal(await page.locator(".charts canvas").count(), 5);
    assert.deepEqual(complaints, []);
    await context.close();
  });

  it("says what to deploy once the seeds have run", () => on({}, async (page) => {
    const rows = page.locator(".deploy tbody tr");
    await rows.first().waitFor();
    const said = Object.fromEntries(await rows.evaluateAll((all) => all.map((row) => [row.querySelector("th").innerText, [...row.querySelectorAll("td")].map((cell) => cell.innerText)])));
    assert.deepEqual(Object.keys(said), ["senders only", "the router's queue only", "both"]);
    assert.equal(said.both[0], "abc †");
    // Beside today's default: less delay, and most of the throughput.
    const [, , , throughput, delay] = said.both.map(Number.parseFloat);
    assert.ok(throughput > 0.7 && throughput < 1.1 && delay < 0.5, JSON.stringify(said));
    // One scheme alone is no choice, and what was said of four must go.
    for (const scheme of ["cubic", "cubic+codel", "bbr"]) {
      await page.getByRole("button", { name: `Remove ${scheme}`, exact: true }).click();
      await settled(page);
    }
    assert.equal(await rows.count(), 0);
    // A scenario as text is none either.
    await page.getByText("More: loss, ACKs, applications").click();
    await page.getByRole("button", { name: "Edit the scenario as text" }).click();
    await page.locator(".editor").waitFor();
    await settled(page);
    assert.equal(await rows.count(), 0);
  }));

  it("works from a folder", () => on({}, async (page) => {
    assert.equal(await page.locator(".scatter .point").count(), 4);
    await tab(page, "Papers' claims");
    await page.locator(".claims details").first().waitFor();
  }, `file://${dist}index.html${single}`));

  it("works without a network once it was there", () => on({ serviceWorkers: "allow" }, async (page, context) => {
    await page.evaluate(() => navigator.serviceWorker.ready);
    await page.reload();
    await settled(page);
    await context.setOffline(true);
    await page.reload();
    await settled(page);
    assert.equal(await page.locator(".scatter .point").count(), 4);
  }));

  it("tells eight stories", () => on({}, async (page) => {
    await tab(page, "Stories");
    const names = await page.locator(".stories h3").allInnerTexts();
    assert.equal(names.length, 8);
    for (const name of names) {
      await tab(page, "Stories");
      await page.getByRole("button", { name: `Open: ${name}`, exact: true }).click();
      await page.locator(".story").waitFor();
      await settled(page);
      assert.equal(await page.locator(".error, .fault").count(), 0, name);
      assert.ok(await page.locator(".scatter .point, .lane canvas").count() > 0, name);
    }
  }));

  it("answers sliders", (t) => on({}, async (page) => {
    const delay = () => cell(page, "cubic", 2);
    const before = Number(await delay());
    await page.evaluate(() => { document.querySelector(".numbers td").dataset.old = "yes"; });
    const slider = page.getByRole("slider", { name: "Buffer, packets" });
    const began = Date.now();
    await slider.fill("30");
    await page.waitForFunction((old) => {
      const row = [...document.querySelectorAll(".numbers tbody tr")][1];
      const text = row?.querySelectorAll("td")[2]?.textContent ?? "";
      return text !== old && text !== "…";
    }, String(before));
    t.diagnostic(`first numbers ${Date.now() - began} ms after the slider moved`);
    await settled(page);
    assert.ok(Number(await delay()) < before / 2, "a small buffer, a short delay");
  }));

  it("takes traces of one's own: pasted, dropped, generated, drawn", () => on({}, async (page) => {
    await page.getByRole("button", { name: "Your own", exact: true }).click();
    await page.getByLabel(/^Text of a trace/).fill("0,5\n1,9\n2,3\n3,");
    await page.getByRole("button", { name: "Use this text" }).click();
    await page.getByText("5.67 Mbit/s on average").waitFor();
    await settled(page);
    await page.locator("input[type=file]").setInputFiles({ name: "my link.trace", mimeType: "text/plain", buffer: Buffer.from("1\n2\n3\n4\n") });
    await page.getByText("12.00 Mbit/s on average").waitFor();
    await settled(page);
    assert.match(await page.getByLabel("The same as a command").inputValue(), /--trace \.\/my-link\.trace/);
    await page.locator("input[type=file]").setInputFiles({ name: "both.pcap", mimeType: "", buffer: bothWays() });
    const direction = page.getByLabel("Direction", { exact: true });
    await direction.waitFor();
    assert.deepEqual(await direction.locator("option").allInnerTexts(), ["from 10.0.0.1: 0.30 MB", "from 10.0.0.2: 0.01 MB"]);
    await page.getByText(/^1\.2\d Mbit\/s on average/).waitFor();
    await direction.selectOption("from:10.0.0.2");
    await page.getByText(/^0\.0\d Mbit\/s on average/).waitFor();
    await settled(page);
    await page.locator("input[type=file]").setInputFiles({ name: "bad", mimeType: "text/plain", buffer: Buffer.from("one\ntwo\n") });
    await page.locator(".fault").waitFor();
    await page.getByRole("button", { name: "Dismiss" }).click();
    await page.getByRole("button", { name: "Generator", exact: true }).click();
    await settled(page);
    await page.getByRole("slider", { name: "Mean rate, Mbit/s" }).fill("20");
    await page.getByText(/^2\d\.\d\d Mbit\/s on average|^1[89]\.\d\d Mbit\/s on average/).waitFor();
    await settled(page);
    await page.getByRole("button", { name: "Draw", exact: true }).click();
    await settled(page);
    const drawn = page.getByRole("slider", { name: /draw here/ });
    const box = await drawn.boundingBox();
    await page.mouse.move(box.x + 10, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 5, box.y + 25, { steps: 20 });
    await page.mouse.up();
    await drawn.press("ArrowUp");
    await settled(page);
    assert.equal(await page.locator(".scatter .point").count(), 4);
    assert.match(await savedText(page, "Trace (Mahimahi)"), /^\d+\n\d+\n/);
  }));

  it("takes any scheme with its options, a competitor, an application and loss", () => on({}, async (page) => {
    await page.getByLabel(/^Scheme to add/).fill("bmcc");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByRole("button", { name: "Options of abc", exact: true }).click();
    await page.locator(".options label").filter({ hasText: /^delta/ }).locator("input").fill("200ms");
    await page.keyboard.press("Tab");
    await settled(page);
    await page.locator(".chip .name").getByText("abc:delta=200ms", { exact: true }).waitFor();
    await page.getByLabel("Competing flow", { exact: true }).selectOption("cubic");
    await settled(page);
    // BMCC's router takes no Cubic beside it: a message for this scheme, numbers for the others.
    assert.equal(await page.locator(".scatter .point").count() + await page.locator(".error").count(), 5);
    await page.getByLabel("Competing flow", { exact: true }).selectOption("");
    await page.getByText("More: loss, ACKs, applications").click();
    await page.getByLabel("Application", { exact: true }).selectOption("video");
    await page.getByRole("slider", { name: "Loss after the link, %" }).fill("1");
    await settled(page);
    assert.equal(await page.locator(".error, .fault").count(), 0);
    assert.match(await page.getByLabel("The same as a command").inputValue(), /brakelight run scenario\.toml/);
    assert.match(await savedText(page, "Scenario (TOML)"), /loss:rate=0\.01[\s\S]*kind = "video"/);
  }));

  it("runs all schemes", (t) => on({}, async (page) => {
    await page.getByRole("slider", { name: "Length, s" }).fill("60");
    await settled(page);
    const began = Date.now();
    await page.getByRole("button", { name: "All", exact: true }).click();
    await settled(page);
    const rows = await page.locator(".numbers tbody tr").count();
    t.diagnostic(`${rows} schemes on a minute of LTE: ${Date.now() - began} ms`);
    assert.ok(rows >= 26);
    assert.equal(await page.locator(".error").count(), 0);
    assert.equal(await page.locator(".scatter .point").count(), rows);
  }));

  it("gives the same bytes from its permalink, and exports", () => on({}, async (page, context) => {
    await page.getByRole("slider", { name: "Round trip, ms" }).fill("50");
    await page.getByRole("button", { name: "Remove bbr" }).click();
    await page.getByRole("slider", { name: "Seeds" }).fill("3");
    await settled(page);
    const outcome = await savedText(page, "Outcome (JSON)");
    const toml = await savedText(page, "Scenario (TOML)");
    const address = await page.getByLabel("This page with this setup").inputValue();
    assert.match(address, /#s=[\w-]+$/);
    const second = await context.newPage();
    await second.goto(address);
    await settled(second);
    assert.equal(await savedText(second, "Outcome (JSON)"), outcome);
    assert.equal(await savedText(second, "Scenario (TOML)"), toml);
    const [runs, arrow] = await savedTable(second, "Runs");
    const schemes = runs.trim().split("\n").map((line) => line.split(",").slice(1, 4).join(" "));
    const expected = ["abc", "cubic", "cubic+codel"].flatMap((scheme) => [1, 2, 3].map((seed) => `${scheme} lte-driving ${seed}`));
    assert.deepEqual(schemes, ["scheme trace seed", ...expected]);
    assert.deepEqual([String(arrow.subarray(0, 6)), String(arrow.subarray(-6))], ["ARROW1", "ARROW1"]);
    const [flows] = await savedTable(second, "Flows over time");
    assert.ok(flows.startsWith("run,scheme,trace,flow,time_s,throughput_mbps,cwnd_pkts,rtt_ms,") && flows.includes("\n0,abc,lte-driving,main,0,"));
    const [links] = await savedTable(second, "Links over time");
    assert.ok(links.startsWith("run,scheme,trace,link,time_s,capacity_mbps,"));
    assert.match(await savedText(second, "Picture (SVG)"), /^<svg[\s\S]*cubic\+codel[\s\S]*<\/svg>$/);
    const [png] = await Promise.all([second.waitForEvent("download"), second.getByRole("button", { name: "Picture (PNG)" }).click()]);
    assert.deepEqual([...(await readFile(await png.path())).subarray(1, 4)], [...Buffer.from("PNG")]);
    // The scenario alone gives the outcome, too.
    assert.equal(JSON.parse(outcome).seed, Number(/^seed = (\d+)$/m.exec(toml)[1]));
    await second.close();
  }));

  it("names a setting that there is not, and is no object's own", () => on({}, async (page) => {
    await page.evaluate((hash) => { location.hash = hash; }, `#s=${deflateRawSync('{"constructor":1}').toString("base64url")}`);
    await page.locator(".fault").getByText(/constructor/).waitFor();
  }));

  it("gives the command that has the same numbers", () => on({}, async (page) => {
    // crates/cli/tests/explorer.rs runs these words.
    assert.equal(
      await page.getByLabel("The same as a command").inputValue(),
      "brakelight compare --trace lte-driving --schemes abc,cubic,cubic+codel,bbr --rtt 100ms --buffer 250pkt --duration 30s --runs 1 --seed 1 --reverse 12Mbps --trace-offset random",
    );
  }));

  it("shows the whole run in its charts after a first look, and what is dragged over", () => on({}, async (page) => {
    const near = async (from, to) => {
      const range = (await page.locator(".charts").getAttribute("data-range")).split(" ").map(Number);
      assert.ok(Math.abs(range[0] - from) < 0.6 && Math.abs(range[1] - to) < 0.6, `${range}, not ${from} to ${to}`);
    };
    await near(0, 30);
    await page.getByRole("slider", { name: "Length, s" }).fill("90");
    await settled(page);
    await near(0, 90);
    const box = await page.locator(".charts .u-over").first().boundingBox();
    await page.mouse.move(box.x + box.width / 3, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + (2 * box.width) / 3, box.y + 40, { steps: 5 });
    await page.mouse.up();
    await near(30, 60);
    // It stays while sliders move.
    await page.getByRole("slider", { name: "Buffer, packets" }).fill("40");
    await settled(page);
    await near(30, 60);
    await page.locator(".charts .u-over").nth(1).dblclick();
    await near(0, 90);
  }));

  it("plays the animation, moves in it, and finds where two schemes diverge", () => on({}, async (page) => {
    await tab(page, "Watch it");
    await page.getByLabel("Scheme B").selectOption("cubic");
    await page.locator(".terms").nth(1).waitFor();
    const time = page.getByRole("slider", { name: /^Time/ });
    await time.fill("5");
    await page.getByRole("button", { name: "Play" }).click();
    await page.waitForFunction(() => Number(document.querySelector(".scrub input").value) > 5.02);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Where do they diverge?" }).click();
    await page.getByText(/They send the first \d+ packets at the same times/).waitFor();
    const drawn = await page.locator(".lane canvas").first().evaluate((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return data.some((value) => value !== 0);
    });
    assert.ok(drawn);
    assert.match(await page.locator(".terms").first().innerText(), /cr, dequeue rate\s+[\d.]+ Mbit/);
  }));

  it("is in the book's page about ABC, or a picture of it is", async () => {
    const docs = fileURLToPath(new URL("../../docs/", import.meta.url));
    const [object] = /<object [\s\S]*<\/object>/.exec(await readFile(`${docs}what-is-abc.md`, "utf8"));
    const book = await mkdtemp(join(tmpdir(), "brakelight-book-"));
    const served = await serve(book);
    try {
      // With an icon, as the book's pages have: a browser asks a server for one where a page names none.
      await writeFile(join(book, "index.html"), `<!doctype html><title>Book</title><link rel="icon" href="data:,">${object}`);
      await mkdir(join(book, "images"));
      await copyFile(`${docs}images/abc-watch.png`, join(book, "images/abc-watch.png"));
      const without = await open(browser, served.address);
      await without.page.waitForFunction(() => document.querySelector("object img").getBoundingClientRect().height > 100);
      await without.context.close();
      await cp(dist, join(book, "explorer"), { recursive: true });
      const { page, context, complaints } = await open(browser, served.address);
      const frame = () => page.frames().find((each) => each.url().includes("embed=watch"));
      while (!frame()) await page.waitForTimeout(20);
      await frame().locator(".lane canvas").waitFor();
      await frame().locator(".terms").getByText("cr, dequeue rate").waitFor();
      assert.equal(await frame().locator("header.page").count(), 0);
      assert.deepEqual(complaints, []);
      await context.close();
    } finally {
      served.close();
      await rm(book, { recursive: true });
    }
  });

  it("looks as the book's picture of it shows", async () => {
    const docs = fileURLToPath(new URL("../../docs/", import.meta.url));
    const [, described] = /<img src="images\/abc-watch.png" alt="([^"]*)"/.exec(await readFile(`${docs}what-is-abc.md`, "utf8"));
    const { page, context } = await open(browser, `${server.address}?embed=watch`, { viewport: { width: 860, height: 420 } });
    await page.locator(".terms").getByText("cr, dequeue rate").waitFor();
    const time = page.getByRole("slider", { name: /^Time/ });
    await time.fill("4.4");
    await time.blur();
    await page.getByText("Time: 4.400 s").waitFor();
    await settled(page);
    // What the picture says in numbers, its description says too: these are exact, whatever draws the letters.
    const term = (name) => page.getByRole("rowheader", { name, exact: true }).locator("xpath=following-sibling::td").innerText();
    const now = `at 4.4 s, x is ${await term("x, queueing delay")}, f is ${await term("f, share of accelerates")} and the window ${await term("window")}`;
    assert.ok(described.includes(now), `docs/what-is-abc.md describes the picture as "${described}"; the page has "${now}"`);
    const seen = await page.screenshot();
    const file = `${docs}images/abc-watch.png`;
    if (process.env.BRAKELIGHT_BLESS) await writeFile(file, seen);
    const kept = await readFile(file);
    // One pixel for ten by ten: fonts differ from one machine to the next, what stands where does not. Other
    // fonts change 0.3 % of them, another moment of the animation 1.1 %.
    const share = await page.evaluate(async (pictures) => {
      const [a, b] = await Promise.all(pictures.map(async (picture) => {
        const bytes = Uint8Array.from(atob(picture), (letter) => letter.charCodeAt(0));
        const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }), { resizeWidth: 86, resizeHeight: 42, resizeQuality: "high" });
        const canvas = new OffscreenCanvas(86, 42).getContext("2d");
        canvas.drawImage(bitmap, 0, 0);
        return canvas.getImageData(0, 0, 86, 42).data;
      }));
      const differs = (at) => [0, 1, 2].some((channel) => Math.abs(a[at + channel] - b[at + channel]) > 40);
      return Array.from({ length: 86 * 42 }, (_, pixel) => differs(4 * pixel)).filter(Boolean).length / (86 * 42);
    }, [seen, kept].map((picture) => picture.toString("base64")));
    await context.close();
    assert.ok(share < 0.007, `${(100 * share).toFixed(1)} % of docs/images/abc-watch.png differ: BRAKELIGHT_BLESS=1 draws it again`);
  });

  it("opens a paper's claim and its scenario as text", () => on({}, async (page) => {
    await tab(page, "Papers' claims");
    await page.getByLabel("Search").fill("ABC-F2 enqueue");
    await page.getByRole("button", { name: "Open ABC-F2 in the explorer" }).click();
    await settled(page);
    assert.equal(await page.locator(".scatter .point").count(), 2);
    await page.getByRole("button", { name: "Edit the scenario as text" }).click();
    const text = page.getByLabel("Scenario file in TOML");
    await text.waitFor();
    await text.fill((await text.inputValue()).replace(/duration = "\d+s"/, 'duration = "oops"'));
    await page.getByRole("button", { name: "Run this text" }).click();
    await page.getByText(/oops/).and(page.locator(".error, .fault, .fault p")).first().waitFor();
  }));

  it("can be used by keyboard alone", () => on({}, async (page) => {
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? "");
    const reach = async (name) => {
      for (let i = 0; i < 150; i++) {
        await page.keyboard.press("Tab");
        if ((await focused()).startsWith(name)) return;
      }
      assert.fail(`Tab does not reach ${name}`);
    };
    await reach("Skip to the results");
    await page.keyboard.press("Enter");
    await reach("Over time");
    await page.keyboard.press("+");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("0");
    await page.evaluate(() => document.activeElement.blur());
    await reach("Buffer, packets");
    const before = await page.getByRole("spinbutton", { name: "Buffer, packets" }).inputValue();
    await page.keyboard.press("ArrowLeft");
    assert.notEqual(await page.getByRole("spinbutton", { name: "Buffer, packets" }).inputValue(), before);
    await settled(page);
    await page.evaluate(() => document.activeElement.blur());
    await reach("Watch it");
    await page.keyboard.press("Enter");
    await reach("▶ Play");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Pause" }).waitFor();
  }));

  for (const [name, options] of [["wide-light", {}], ["wide-dark", { colorScheme: "dark" }], ["phone-light", phone], ["phone-dark", { ...phone, colorScheme: "dark" }]]) {
    it(`is accessible and fits: ${name}`, () => on(options, async (page) => {
      // On a phone only what is laid out otherwise.
      const tabs = ["Compare", "Watch it", ...("isMobile" in options ? [] : ["Stories", "Papers' claims"])];
      for (const where of tabs) {
        await tab(page, where);
        await page.waitForTimeout(400);
        assert.ok(await fits(page), `${where} is wider than the screen`);
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
        const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
        assert.deepEqual(serious.map(({ id, nodes }) => [id, nodes.slice(0, 3).map((node) => node.html)]), [], where);
        if (pictures) await page.screenshot({ path: `${pictures}/${name}-${where.replace(/\W+/g, "-")}.png`, fullPage: true });
      }
    }));
  }
});
