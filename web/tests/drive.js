// Chromium for the tests of the page: found as the other browser test finds it, with everything that it
// complains about kept.
import { createServer } from "node:http";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { delimiter, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".webmanifest": "application/manifest+json" };

/** Returns the browser that is installed, under the names distributions give it. */
export function browserPath() {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const found = [process.env.CHROMIUM, ...folders.flatMap((folder) => names.map((name) => join(folder, name)))];
  return found.find((path) => path && existsSync(path));
}

/** Serves a folder on this machine alone. */
export async function serve(folder) {
  const server = createServer(async (request, response) => {
    const path = normalize(new URL(request.url, "http://localhost").pathname);
    const file = join(folder, path.endsWith("/") ? join(path, "index.html") : path);
    try {
      const bytes = await readFile(file);
      response.writeHead(200, { "content-type": types[extname(file)] ?? "application/octet-stream" }).end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { address: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

export function launch() {
  const gently = fileURLToPath(new URL("../../scripts/gate/browser", import.meta.url));
  const options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
  return chromium.launch({ executablePath: gently, args: options, env: { ...process.env, BROWSER: browserPath() } });
}

// Milliseconds that anything may take: a page waited for more than a minute on a slow machine with other jobs beside it.
const patience = 240_000;

/** Opens a page. `complaints` gets its errors, its warnings, and requests that leave the machine. */
export async function open(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, acceptDownloads: true, ...options });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(`${message.text()} (${message.location().url})`);
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    const url = request.url();
    if (!/^(file:|data:|blob:|http:\/\/127\.0\.0\.1[:/])/.test(url)) complaints.push(`request to ${url}`);
  });
  await page.goto(address);
  return { page, context, complaints };
}

/** Waits until everything that was asked for has been computed. */
export async function settled(page) {
  // What a control changes is told when the page has drawn it; a pointer and a number field take a moment more.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20))));
  await page.waitForFunction(() => document.documentElement.dataset.settled === "yes");
}
