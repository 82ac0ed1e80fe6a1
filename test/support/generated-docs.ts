/** The pages of docs/ that are made from the code: `npm run docs` writes them, a test compares them. */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { FAULT_CODES } from "../../src/base/fault-codes.ts";

const ROOT = resolve(import.meta.dirname, "../..");

/** Path from the project's root → content. */
export function generateDocs(): Record<string, string> {
  return { "docs/faults.md": faultsPage() };
}

function faultsPage(): string {
  const rows = Object.entries(FAULT_CODES).map(
    ([code, { verdict, happened, advice }]) => `| \`${code}\` | ${verdict} | ${happened}. | ${advice} |`,
  );
  return `# Faults

Whatever goes wrong has one of these codes. It stands in \`inlet … --json\` errors; on a terminal the sentences are shown.
The verdict says what Inlet does about it by itself:

- **retry**: it may pass; it is tried again soon, with growing pauses.
- **wait**: something outside has to change first (a person, a lock, a limit).
- **quarantine**: what arrived cannot be vouched for; it is kept apart and reported.
- **fatal**: trying again cannot help; the request or the configuration has to change.

| code | verdict | what happened | what to do |
|---|---|---|---|
${rows.join("\n")}
`;
}

if (import.meta.main) {
  for (const [path, content] of Object.entries(generateDocs())) writeFileSync(resolve(ROOT, path), content);
}
