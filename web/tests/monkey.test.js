// Random use: a quarter of a minute, or as long as BRAKELIGHT_MONKEY_SECONDS says. Nothing in the console, and memory does
// not grow.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { it } from "node:test";
import { launch, open, serve, settled } from "./drive.js";

const dist = fileURLToPath(new URL("../dist/", import.meta.url));
const seconds = Number(process.env.BRAKELIGHT_MONKEY_SECONDS ?? 15);
const seed = Number(process.env.BRAKELIGHT_MONKEY_SEED ?? 1);

it(`${seconds} seconds of random use`, { timeout: (seconds + 600) * 1000 }, async (t) => {
  const server = await serve(dist);
  const browser = await launch();
  try {
    const { page, context, complaints } = await open(browser, server.address);
    await settled(page);
    let state = seed;
    const draw = (most) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * most);
    };
    const session = await context.newCDPSession(page);
    const heap = async () => {
      await session.send("HeapProfiler.collectGarbage");
      const { usedSize } = await session.send("Runtime.getHeapUsage");
      const { nodes } = await session.send("Memory.getDOMCounters");
      return { bytes: usedSize, nodes };
    };
    const usual = async () => {
      await page.evaluate(() => { location.hash = "#s=q1YqKs0rVrIy1FEqTs5IzU0tVrKKVkpMSlaKrQUA"; });
      await page.getByRole("navigation").getByRole("button", { name: "Compare", exact: true }).click();
      await settled(page);
      return heap();
    };
    const measured = [];
    let actions = 0;
    const began = Date.now();
    while (Date.now() - began < seconds * 1000) {
      // The same draws each time: which control, and what is done to it. No downloads: the browser asks after
      // ten of them.
      await page.evaluate(([which, value]) => {
        const controls = [...document.querySelectorAll("button, input, select, summary, textarea, .draw, .charts")]
          .filter((element) => element.checkVisibility() && !element.closest(".share") && element.type !== "file");
        const element = controls[which % controls.length];
        if (!element) return;
        const told = (type) => element.dispatchEvent(new Event(type, { bubbles: true }));
        if (element.matches("input[type=range], input[type=number]")) {
          const [low, high] = [Number(element.min || 0), Number(element.max || 100)];
          element.value = String(low + ((high - low) * (value % 100)) / 100);
          told("input");
          told("change");
        } else if (element.matches("select")) {
          element.selectedIndex = value % element.options.length;
          told("change");
        } else if (element.matches("input[type=checkbox]")) {
          element.click();
        } else if (element.matches("input, textarea")) {
          element.value = ["abc", "cubic+codel", "0,5\n1,9\n", "<b>", "", "bbr:x=1"][value % 6];
          told("input");
          told("change");
        } else if (element.matches(".charts, .draw")) {
          element.dispatchEvent(new KeyboardEvent("keydown", { key: ["+", "-", "0", "ArrowLeft", "ArrowRight", "ArrowUp"][value % 6], bubbles: true }));
        } else {
          element.click();
        }
      }, [draw(1e6), draw(1e6)]);
      actions++;
      await page.waitForTimeout(draw(4) === 0 ? 400 : 30);
      // The same state from time to time, so that memory can be compared.
      if (actions % 150 === 0) measured.push(await usual());
    }
    measured.push(await usual());
    t.diagnostic(`${actions} actions; ${measured.map(({ bytes, nodes }) => `${(bytes / 1e6).toFixed(1)} MB, ${nodes} nodes`).join("; ")}`);
    assert.deepEqual(complaints, []);
    if (measured.length > 2) {
      const half = measured.slice(Math.floor(measured.length / 2));
      const least = (list) => Math.min(...list.map(({ bytes }) => bytes));
      assert.ok(least(half) < 1.5 * measured[0].bytes + 10e6, "memory grows");
    }
    await context.close();
  } finally {
    await browser.close();
    server.close();
  }
});
