/** `inlet simulate` as a separate process, called with plain HTTP like curl. */
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, test } from "vitest";
import { makeFolder, runProgram, startProgram } from "../support/program.ts";

interface FirstLine {
  readonly url: string;
  readonly clientId: string;
  readonly transfers: readonly {
    mailbox: string;
    trackingId: string;
    transferId: string;
    password: string;
  }[];
}

describe("the simulated service", () => {
  test("prints its address and transfers on the first line, and answers plain requests", async () => {
    const { child, first } = await startSimulator([]);
    expect(Object.keys(first)).toEqual(["url", "clientId", "pid", "transfers"]);
    expect(Object.keys(first.transfers[0] ?? {})).toEqual([
      "mailbox",
      "sender",
      "trackingId",
      "transferId",
      "password",
    ]);
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
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
  });

  test("logs each request on standard error, without secrets", async () => {
    const { child, first } = await startSimulator([]);
    const secret = first.transfers[0]?.password ?? "";
    const log: string[] = [];
    child.stderr?.on("data", (chunk) => log.push(String(chunk)));
    await fetch(
      `${first.url}/api/transfers/x?password=${encodeURIComponent(secret)}&client-id=${first.clientId}`,
    );
    await expect.poll(() => log.join("")).toContain("GET /api/transfers/x");
    for (const hidden of [secret, encodeURIComponent(secret), first.clientId])
      expect(log.join("")).not.toContain(hidden);
  });

  test("accepts transfers and faults while it runs", async () => {
    const { first } = await startSimulator(["--quiet"]);
    const plan = {
      from: "a@example.org",
      to: ["b@example.com"],
      password: "Sunny+Harbour%42",
      files: [{ name: "x", text: "y" }],
    };
    const added = await fetch(`${first.url}/control/transfers`, {
      method: "POST",
      body: JSON.stringify(plan),
    });
    expect(added.ok).toBe(true);
    const fault = { on: "status", does: { kind: "error", status: 503, retryAfter: "9" } };
    await fetch(`${first.url}/control/faults`, { method: "POST", body: JSON.stringify(fault) });
    const refused = await fetch(`${first.url}/api/status`);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "9"]);
    expect((await fetch(`${first.url}/api/status`)).status).toBe(200);
  });

  test("runs a scenario from a file", async () => {
    const folder = await makeFolder();
    const path = join(folder, "scenario.json");
    const transfer = { from: "a@example.org", to: ["b@example.com"], trackingId: "mine", files: [] };
    await writeFile(path, JSON.stringify({ transfers: [transfer] }));
    const { first } = await startSimulator(["--scenario", path]);
    expect(first.transfers).toMatchObject([{ mailbox: "b@example.com", trackingId: "mine" }]);
  });

  test("runs the example scenario of the package", async () => {
    const example = join(import.meta.dirname, "../../config/scenario.example.json");
    const { first } = await startSimulator(["--scenario", example]);
    expect(first.transfers.length).toBeGreaterThan(0);
  });

  test.each([
    ["{", "JSON"],
    ['{ "transfer": [] }', "transfers"],
    [
      '{ "transfers": [{ "from": "a@b", "to": ["c@d"], "files": [{ "name": "x" }] }] }',
      "transfers.0.files.0",
    ],
    ['{ "faults": [{ "does": { "kind": "resett" } }] }', "faults.0.does"],
  ])("explains the wrong scenario %j", async (content, named) => {
    const folder = await makeFolder();
    await writeFile(join(folder, "bad.json"), content);
    const { exitCode, stdout, stderr } = await runProgram(["simulate", "--scenario", "bad.json"], {
      cwd: folder,
    });
    expect([exitCode, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("bad.json");
    expect(stderr).toContain(named);
  });

  test("fails with a message if it cannot listen, or a file is missing", async () => {
    const { first } = await startSimulator([]);
    const taken = await runProgram(["simulate", "--port", new URL(first.url).port]);
    expect(taken).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("(EADDRINUSE)") });
    const missing = await runProgram(["simulate", "--scenario", "/no/such"]);
    expect(missing).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("/no/such cannot be read"),
    });
  });
});

async function startSimulator(args: readonly string[]) {
  const child = startProgram(["simulate", ...args]);
  if (child.stdout === null) throw new Error("no pipe");
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return { child, first: JSON.parse(line) as FirstLine };
}
