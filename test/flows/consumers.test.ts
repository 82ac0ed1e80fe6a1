/** The example consumers of docs/consuming.md, run on real deliveries. */
import { readFileSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { findProgram } from "../support/debian.ts";
import { install } from "../support/installation.ts";
import { type Finished, runCommand, runProgram } from "../support/program.ts";
import { ROOT } from "../support/root.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const page = readFileSync(join(ROOT, "docs/consuming.md"), "utf8");
const section = page.slice(page.indexOf("## Example consumers"), page.indexOf("## Run a command"));

type Consume = (inbox: string, taken: string) => Promise<Finished>;

const CONSUMERS: readonly [string, Consume, tags: string[]][] = [
  [
    "the shell",
    (INBOX, TAKEN) => runCommand("sh", ["-eu", "-c", example("sh")], { env: { INBOX, TAKEN } }),
    [],
  ],
  [
    "Python",
    async (inbox, taken) => {
      const python = await findProgram("python3", ["python3-minimal", "libpython3-stdlib"]);
      return runCommand(python.path, ["-c", example("python"), inbox, taken]);
    },
    ["system"],
  ],
];

describe.each(CONSUMERS)("the consumer for %s", (_name, consume, tags) => {
  test("takes every finished folder once and nothing else, and these count as picked up", {
    tags,
  }, async () => {
    const { inbox, taken, once, simulator } = await setUp();
    const first = await consume(inbox, taken);
    expect([first.exitCode, first.stderr]).toEqual([0, ""]);
    expect(first.stdout.trim().split("\n").toSorted()).toEqual([
      `took ${join(taken, "t1")}`,
      `took ${join(taken, "t2")}`,
    ]);
    expect(await readdir(join(inbox, ".inlet/quarantine"))).toHaveLength(1);
    expect((await consume(inbox, taken)).stdout).toBe("");
    simulator.addTransfer(transferPlan({ trackingId: "t3" }));
    await once();
    expect((await consume(inbox, taken)).stdout).toContain("t3");
    expect((await readdir(taken)).toSorted()).toEqual(["t1", "t2", "t3"]);
  });

  test.each(["a.txt", "message.eml"])("notices a change of %s", { tags }, async (name) => {
    const { inbox, taken } = await setUp();
    await writeFile(join(inbox, MAILBOX, "anna@supplier.example/t1", name), "changed");
    expect((await consume(inbox, taken)).exitCode).toBe(1);
  });
});

test("the consumer for PowerShell uses existing fields of the manifest", async () => {
  // Debian has no PowerShell: only the field names can be checked.
  const { inbox } = await setUp();
  const folder = join(inbox, MAILBOX, "anna@supplier.example/t1");
  const manifest = JSON.parse(readFileSync(join(folder, "transfer.json"), "utf8"));
  for (const [, key = ""] of example("powershell").matchAll(/\$transfer\.(\w+)/g))
    expect(manifest).toHaveProperty(key);
  for (const [, key = ""] of example("powershell").matchAll(/\$file\.(\w+)/g)) {
    expect(manifest.files[0]).toHaveProperty(key);
  }
});

async function setUp() {
  const wrong = [{ name: "a.txt", text: "x", csvChecksum: "wrong" } as const];
  const transfers = [
    transferPlan({ trackingId: "t1", message: "Psst" }),
    transferPlan({ trackingId: "t2" }),
    transferPlan({ trackingId: "wrong", files: wrong }),
  ];
  const { inbox, folder, config, simulator } = await install({ transfers });
  const taken = join(folder, "taken");
  await mkdir(taken);
  const once = () => runProgram(["once", "--config", config]);
  await once();
  return { inbox, taken, simulator, once };
}

function example(language: string): string {
  const [, code] = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(section) ?? [];
  if (code === undefined) throw new Error(`docs/consuming.md has no consumer for ${language}`);
  return code;
}
