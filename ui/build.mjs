// Builds dist/page.html: one file with script and style in it, and a policy that allows just these.
// --check builds in memory and fails when dist/page.html differs.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = new URL(".", import.meta.url).pathname;
const kLargestGzip = 80_000;

const bundled = await build({
  entryPoints: [here + "src/main.tsx"],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "ascii",
  write: false,
});
const styled = await build({ entryPoints: [here + "src/style.css"], minify: true, write: false });
const script = bundled.outputFiles[0].text.replaceAll("</script", "<\\/script").trim();
const style = styled.outputFiles[0].text.trim();
const sha = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const policy =
  `default-src 'none'; script-src ${sha(script)}; style-src ${sha(style)}; ` +
  `img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'`;
const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>Assay</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<div id="app"><p class="loading">Reading the run …</p></div>
<noscript>This page needs JavaScript. The same figures as text: assay report RUN</noscript>
<!--assay-data-->
<script>${script}</script>
</body>
</html>
`;
const packed = gzipSync(page, { level: 9 }).length;
console.log(`page.html: ${page.length} bytes, ${packed} gzipped (at most ${kLargestGzip})`);
if (packed > kLargestGzip) {
  console.error("the page is too large");
  process.exit(1);
}
const path = here + "dist/page.html";
if (process.argv.includes("--check")) {
  if (readFileSync(path, "utf8") !== page) {
    console.error("ui/dist/page.html is not what ui/src builds to; run: npm --prefix ui run build");
    process.exit(1);
  }
} else {
  mkdirSync(here + "dist", { recursive: true });
  writeFileSync(path, page);
}
