/** The example consumer of docs/consuming.md, run on real deliveries. */
import { readFileSync } from "node:fs";
import { mkdir, readdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { findProgram } from "../support/debian.ts";
import { install, mailboxKeys } from "../support/installation.ts";
import { type Finished, runCommand, runProgram } from "../support/program.ts";
import { ROOT } from "../support/root.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const OTHER = "archive@example.com";
const page = readFileSync(join(ROOT, "docs/consuming.md"), "utf8");
const section = page.slice(page.indexOf("## An example consumer"), page.indexOf("## Check a transfer"));

describe("the consumer in Python", { tags: ["system"] }, () => {
  test("takes every finished folder once and nothing else, and these count as picked up", async () => {
    const { inbox, taken, once, simulator } = await setUp();
    const first = await consume(inbox, taken);
    expect([first.exitCode, first.stderr]).toEqual([0, ""]);
    // Two of them are the same transfer, in two mailboxes.
    expect(await transfersIn(taken)).toEqual(["t1", "t1", "t2"]);
    expect(first.stdout.trim().split("\n")).toHaveLength(3);
    expect(await readdir(join(inbox, ".inlet/quarantine"))).toHaveLength(1);
    expect((await consume(inbox, taken)).stdout).toBe("");
    simulator.addTransfer(transferPlan({ trackingId: "t3" }));
    await once();
    expect((await consume(inbox, taken)).stdout).toContain("took");
    expect(await transfersIn(taken)).toEqual(["t1", "t1", "t2", "t3"]);
  });

  test("fails if its folder is missing, and takes nothing", async () => {
    const { inbox, taken } = await setUp();
    await rmdir(taken);
    const { exitCode, stderr } = await consume(inbox, taken);
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(taken)]);
    await mkdir(taken);
    expect((await consume(inbox, taken)).stdout.trim().split("\n")).toHaveLength(3);
  });

  test.each(["a.txt", "message.eml"])("notices a change of %s", async (name) => {
    const { inbox, taken } = await setUp();
    await writeFile(join(inbox, MAILBOX, "anna@supplier.example/t1", name), "changed");
    expect((await consume(inbox, taken)).exitCode).toBe(1);
  });
});

async function consume(inbox: string, taken: string): Promise<Finished> {
  const python = await findProgram("python3", ["python3-minimal", "libpython3-stdlib"]);
  const [, code] = /```python\n([\s\S]*?)```/.exec(section) ?? [];
  if (code === undefined) throw new Error("docs/consuming.md has no consumer in Python");
  return runCommand(python.path, ["-c", code, inbox, taken]);
}

/** The tracking-ids of all folders, which are called by their delivery ids. */
async function transfersIn(taken: string): Promise<string[]> {
  const found = (await readdir(taken)).map((id) => {
    const manifest = JSON.parse(readFileSync(join(taken, id, "transfer.json"), "utf8"));
    expect(manifest.deliveryId).toBe(id);
    return manifest.trackingId as string;
  });
  return found.toSorted();
}

async function setUp() {
  const wrong = [{ name: "a.txt", text: "x", csvChecksum: "wrong" } as const];
  const transfers = [
    transferPlan({ trackingId: "t1", message: "Psst", to: [MAILBOX, OTHER] }),
    transferPlan({ trackingId: "t2" }),
    transferPlan({ trackingId: "wrong", files: wrong }),
  ];
  const { inbox, folder, config, simulator } = await install(
    { transfers },
    { mailboxes: [mailboxKeys(MAILBOX), mailboxKeys(OTHER)] },
  );
  const taken = join(folder, "taken");
  await mkdir(taken);
  const once = () => runProgram(["once", "--config", config]);
  await once();
  return { inbox, taken, simulator, once };
}
