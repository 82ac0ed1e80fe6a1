/** `npm run check:audit`, with the answers of registries. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeFolder, runCommand } from "../../support/program.ts";
import { ROOT } from "../../support/root.ts";

test("a vulnerability that reaches users is a failure, and one of a tool is only printed", async () => {
  const vulnerabilities = (severity: string) => ({ undici: { severity }, vitest: { severity: "critical" } });
  const tool = "vitest: critical, only builds and tests\n2 packages with known vulnerabilities\n";
  expect(await audit({ vulnerabilities: vulnerabilities("moderate") }, 1)).toEqual([0, tool]);
  expect(await audit({ vulnerabilities: vulnerabilities("high") }, 1)).toEqual([
    1,
    `undici: high, in the program\n${tool}`,
  ]);
});

test("a registry without an answer is no failure", async () => {
  expect(await audit({ message: "405 Method Not Allowed" }, 1)).toEqual([
    0,
    "no audit: 405 Method Not Allowed\n",
  ]);
  expect(await audit(undefined, 7)).toEqual([0, "no audit: npm printed no report\n"]);
});

/** npm prints this report. Returns exit code and output. */
async function audit(report: object | undefined, exitCode: number) {
  const folder = await makeFolder();
  const npm = `#!/bin/sh\nprintf %s '${report === undefined ? "" : JSON.stringify(report)}'\nexit ${exitCode}\n`;
  await writeFile(join(folder, "npm"), npm, { mode: 0o755 });
  const script = join(ROOT, "packaging/audit.ts");
  const env = { PATH: `${folder}:${process.env["PATH"]}` };
  const finished = await runCommand(process.execPath, [script], { cwd: ROOT, env });
  return [finished.exitCode, finished.stdout];
}
