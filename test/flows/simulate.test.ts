/** `inlet simulate` as a separate process, called with plain HTTP like curl. */
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, test } from "vitest";
import { makeFolder, runProgram, startProgram } from "../support/program.ts";
import { ROOT } from "../support/root.ts";

interface FirstLine {
  readonly url: string;
  readonly clientId: string;
  readonly transfers: readonly Record<"mailbox" | "trackingId" | "transferId" | "password", string>[];
}

describe("the simulated service", () => {
  test("prints its address and transfers on the first line, answers plain requests, and logs each without secrets", async () => {
    const { child, first } = await startSimulator([]);
    expect(Object.keys(first)).toEqual(["url", "clientId", "pid", "transfers"]);
    const keys = ["mailbox", "sender", "trackingId", "transferId", "password"];
    expect(Object.keys(first.transfers[0] ?? {})).toEqual(keys);
    const [transfer] = first.transfers;
    const headers = {
      "X-CS-MajorApiVersion": "1",
      "X-CS-MinimumMinorApiVersion": "12",
      "X-CS-ProductKey": "api.rest",
      "X-CS-ClientId": first.clientId,
      "X-CS-Password": encodeURIComponent(transfer?.password ?? ""),
    };
    const answer = await fetch(`${first.url}/api/transfers/${transfer?.transferId}/files`, { headers });
    expect(await answer.json()).toMatchObject({ data: [{ fileName: "confirmation.txt" }, {}] });
    expect(await (await fetch(`${first.url}/control`)).text()).toContain("curl");
    const secret = transfer?.password ?? "";
    const log: string[] = [];
    child.stderr?.on("data", (chunk) => log.push(String(chunk)));
    await fetch(
      `${first.url}/api/transfers/x?password=${encodeURIComponent(secret)}&client-id=${first.clientId}`,
    );
    await expect.poll(() => log.join("")).toContain("GET /api/transfers/x");
    for (const hidden of [secret, encodeURIComponent(secret), first.clientId])
      expect(log.join("")).not.toContain(hidden);
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
  });

  test("runs a scenario from a file, such as the example of the package", async () => {
    const path = join(await makeFolder(), "scenario.json");
    const transfer = { from: "a@example.org", to: ["b@example.com"], trackingId: "mine", files: [] };
    await writeFile(path, JSON.stringify({ transfers: [transfer] }));
    const { first } = await startSimulator(["--scenario", path]);
    expect(first.transfers).toMatchObject([{ mailbox: "b@example.com", trackingId: "mine" }]);
    const example = await startSimulator(["--scenario", join(ROOT, "config/scenario.example.json")]);
    expect(example.first.transfers.length).toBeGreaterThan(0);
  });

  test("explains a wrong or missing scenario, and why it cannot listen", async () => {
    const { first } = await startSimulator([]);
    const cwd = await makeFolder();
    for (const [content, named] of [
      ["{", "JSON"],
      ['{ "faults": [{ "does": { "kind": "resett" } }] }', "faults.0.does"],
    ] as const) {
      await writeFile(join(cwd, "bad.json"), content);
      const { exitCode, stdout, stderr } = await runProgram(["simulate", "--scenario", "bad.json"], { cwd });
      expect([exitCode, stdout, stderr]).toEqual([2, "", expect.stringContaining(named)]);
      expect(stderr).toContain("bad.json");
    }
    for (const [args, why] of [
      [["--port", new URL(first.url).port], "(EADDRINUSE)"],
      [["--scenario", "/no/such"], "/no/such cannot be read"],
    ] as const) {
      const { exitCode, stderr } = await runProgram(["simulate", ...args]);
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining(why)]);
    }
  });
});

async function startSimulator(args: readonly string[]) {
  const child = startProgram(["simulate", ...args]);
  if (child.stdout === null) throw new Error("no pipe");
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return { child, first: JSON.parse(line) as FirstLine };
}
