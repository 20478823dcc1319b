// One page of plain files that works from a folder, too: browsers load no module scripts and no workers from
// `file:`, so the script is a classic one, the worker is inside it, and the module is text in a script.
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { defineConfig } from "vite";
import { claims } from "./claims.js";
import { texts } from "./src/texts";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const module =
  process.env.BRAKELIGHT_EXPLORER_MODULE ??
  here("../target/portable/wasm32-unknown-unknown/web/brakelight_web.wasm");

/** The papers' claims with the verdicts that the book keeps. */
function keptClaims() {
  const folder = here("../experiments/");
  const id = (file) => /^id = "(.*)"/m.exec(readFileSync(folder + file, "utf8"))?.[1];
  const files = new Map(readdirSync(folder).filter((file) => file.endsWith(".toml")).map((file) => [id(file), file]));
  const pages = here("../docs/reproduction/");
  const texts = readdirSync(pages).filter((file) => file.endsWith(".md")).map((file) => readFileSync(pages + file, "utf8"));
  return claims(texts.join("\n"), files);
}

/** What the simulator says can be named, so that the page shows it before the simulator is there. */
async function registry() {
  const { instance } = await WebAssembly.instantiate(readFileSync(module));
  const { memory, room, answer, text } = instance.exports;
  const request = new TextEncoder().encode(JSON.stringify({ do: "registry" }));
  const place = room(0, request.length) >>> 0;
  new Uint8Array(memory.buffer, place, request.length).set(request);
  const length = answer() >>> 0;
  const { ok, error } = JSON.parse(new TextDecoder().decode(new Uint8Array(memory.buffer, text() >>> 0, length)));
  if (error) throw new Error(error);
  return JSON.stringify(ok);
}

/** `virtual:registry`: the answer as text, since browsers read JSON quicker than script. */
function registryModule() {
  return {
    name: "brakelight-registry",
    resolveId: (id) => (id === "virtual:registry" ? `\0${id}` : undefined),
    load: async (id) => (id === "\0virtual:registry" ? `export default ${JSON.stringify(await registry())};` : undefined),
  };
}

/** A file of this folder with the page's texts in place of `{{their names}}`. */
const filled = (file) => readFileSync(here(file), "utf8").replace(/{{(\w+)}}/g, (_, name) => texts[name]);

/** Writes what is not script: the page, the module, the claims, the service worker with its list of files. */
function page() {
  return {
    name: "brakelight-page",
    // After the style sheet is there.
    enforce: "post",
    generateBundle(_options, bundle) {
      if (!existsSync(module)) {
        this.error(`no module at ${module}: scripts/explorer builds it`);
      }
      const wasm = gzipSync(readFileSync(module), { level: 9 }).toString("base64");
      const files = {
        "module.js": `self.brakelightModule="${wasm}";\n`,
        "claims.js": `self.brakelightClaims=${JSON.stringify(keptClaims())};\n`,
        "index.html": filled("index.html"),
        "manifest.webmanifest": filled("manifest.webmanifest"),
        "icon.svg": readFileSync(here("icon.svg"), "utf8"),
      };
      const hash = createHash("sha256");
      for (const output of Object.values(bundle)) hash.update(output.code ?? output.source);
      for (const source of Object.values(files)) hash.update(source);
      const names = [...Object.keys(bundle), ...Object.keys(files)];
      const service = readFileSync(here("service.js"), "utf8")
        .replace('"VERSION"', JSON.stringify(hash.digest("hex").slice(0, 16)))
        .replace('["FILES"]', JSON.stringify(["./", ...names]));
      files["service.js"] = service;
      for (const [fileName, source] of Object.entries(files)) {
        this.emitFile({ type: "asset", fileName, source });
      }
    },
  };
}

export default defineConfig({
  base: "./",
  publicDir: false,
  plugins: [registryModule(), page()],
  worker: { format: "iife" },
  esbuild: { legalComments: "none" },
  build: {
    outDir: "dist",
    emptyOutDir: true,
    modulePreload: false,
    cssCodeSplit: false,
    chunkSizeWarningLimit: 2000,
    rollupOptions: {
      input: here("src/main.tsx"),
      output: { format: "iife", entryFileNames: "app.js", assetFileNames: "style[extname]" },
    },
  },
});
