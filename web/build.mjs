// Builds the page: node build.mjs [FOLDER], the package's assets where none is named.
// The same sources and package-lock.json give the same bytes.
import { build } from "esbuild";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "../src/tengen/serve/assets");
await mkdir(out, { recursive: true });

const result = await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx", style: "src/style.css" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});
for (const name of ["index.html", "icon.svg"]) {
  await copyFile(join(here, "src", name), join(out, name));
}

// The licence of each package that the bundle holds a part of.
const packages = new Set();
for (const path of Object.keys(result.metafile.inputs)) {
  const found = path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/);
  if (found) packages.add(found[1]);
}
const notices = ["The page of tengen serve holds parts of these packages."];
for (const name of [...packages].sort()) {
  const folder = join(here, "node_modules", name);
  const { version, homepage } = JSON.parse(await readFile(join(folder, "package.json")));
  const licence = (await readFile(join(folder, "LICENSE"), "utf8")).trim();
  notices.push(`${name} ${version}${homepage ? `, ${homepage}` : ""}\n\n${licence}`);
}
const rule = `\n\n${"-".repeat(72)}\n\n`;
await writeFile(join(out, "NOTICE.txt"), notices.join(rule) + "\n");
