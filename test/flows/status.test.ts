/** `inlet status`, with and without a running daemon. */
import { once } from "node:events";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import { socketsOf } from "../../src/config/folders.ts";
import { openSite } from "../support/operator.ts";
import { freePort } from "../support/redis-server.ts";
import { listen } from "../support/servers.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

describe("inlet status", () => {
  test("shows the daemon's status, for people, programs and health checks", async () => {
    const { inlet, run, simulator } = await setUp();
    await run();
    await expect.poll(() => simulator.refusedPasswords("closed")).toHaveLength(1);
    const read = async () => JSON.parse((await inlet("status --json")).stdout);
    await expect.poll(async () => (await read()).recent).toMatchObject([{ trackingId: "t1" }]);
    await expect.poll(async () => (await read()).totals.attention).toBe(3);
    // The daemon of a busy machine may not answer in time.
    await expect.poll(async () => (await inlet("status")).exitCode).toBe(3);
    const { stdout } = await inlet("status");
    expect(stdout).toContain("3 transfers need attention");
    expect(stdout).toContain(`process ${process.pid}, `);
    expect(stdout).toContain("closed from anna@supplier.example: needs a password");
    expect(stdout).toMatch(/✓ orders@example\.com: polled .* 3 active transfers/);
    expect(stdout).toContain(`${MAILBOX}/anna@supplier.example/t1`);
    for (const what of ["", " alive", " ready"])
      expect((await inlet(`status --health${what}`)).exitCode).toBe(0);
    expect(await read()).toMatchObject({
      live: true,
      daemon: { pid: process.pid, startedAt: expect.any(String) },
    });
  });

  test("I7 nothing silent: a permanent refusal needs attention at once, with and without a daemon", async () => {
    const listen = `127.0.0.1:${await freePort()}`;
    const refusal = { kind: "error", status: 403, errorCode: 3010 } as const;
    const { inlet, run } = await openSite(
      {
        transfers: [transferPlan({ trackingId: "t1" })],
        faults: [{ on: "files", times: "always", does: refusal }],
      },
      { http: { listen } },
    );
    const daemon = await run();
    const metrics = async () => (await fetch(`http://${listen}/metrics`)).text();
    await expect.poll(() => metrics().catch(() => "")).toContain("inlet_attention 1");
    const attention = expect.stringContaining("1 transfer needs attention");
    expect(await inlet("status")).toMatchObject({ exitCode: 3, stdout: attention });
    await daemon.stop();
    expect(await inlet("status")).toMatchObject({ exitCode: 4, stdout: attention });
  });

  test("needs no secret, and works while the configuration is invalid or missing, and shows that", async () => {
    const { config, inlet, run, rewrite, keys } = await setUp();
    const daemon = await run();
    const codeOf = async (line: string) => (await inlet(line)).exitCode;
    await expect.poll(async () => (await inlet("status")).stdout).toContain("3 transfers need attention");
    const text = await readFile(config, "utf8");
    const credential = [{ sender: "*", password: { credential: "secret_supplier" } }];
    await rewrite({ ...keys, mailboxes: [{ email: MAILBOX, passwords: credential }] });
    await expect.poll(() => codeOf("status")).toBe(3);
    expect(await codeOf("retry closed")).toBe(3);
    await rewrite({ ...keys, mailboxes: [{ email: MAILBOX, poll: "two monkeys" }] });
    expect(await codeOf("status --health alive")).toBe(0);
    await writeFile(config, "a: [");
    expect(await codeOf("status --health alive")).toBe(1);
    for (const spoilt of [`${text}\n]`, text.replace("mailboxes", "mailboxs"), undefined]) {
      if (spoilt === undefined) await rm(config);
      else await writeFile(config, spoilt);
      const { exitCode, stdout } = await inlet("status");
      expect(exitCode).toBe(3);
      expect(stdout).toContain(`process ${process.pid}, `);
      expect(stdout).toMatch(/Problems:\n {2}✗ configuration, since .*: The configuration .* is not valid: /);
      expect(stdout).toContain("closed from anna@supplier.example: needs a password");
      const asJson = await inlet("status --json");
      expect(JSON.parse(asJson.stdout).troubles).toContainEqual(
        expect.objectContaining({ what: "configuration", code: "CONFIG_INVALID" }),
      );
    }
    await daemon.stop();
    expect(await inlet("status")).toMatchObject({ exitCode: 2, stdout: "" });
  });

  test("shows the state in the work folder if no daemon answers, and fails the health check", async () => {
    const { config, inlet, expectInlet } = await setUp();
    const before = await inlet("status");
    expect(before).toMatchObject({ exitCode: 4, stdout: expect.stringContaining("No daemon answers") });
    const asJson = await inlet("status --json");
    const { live, daemon } = JSON.parse(asJson.stdout);
    expect([asJson.exitCode, live, daemon.pid, daemon.startedAt]).toEqual([4, false, undefined, undefined]);
    await inlet("once");
    const { exitCode, stdout } = await inlet("status");
    expect(exitCode).toBe(4);
    expect(stdout).toMatch(/^No daemon answers\. .*\n3 transfers need attention\n/);
    expect(stdout).toContain("closed from anna@supplier.example: needs a password");
    expect(stdout).toContain("wrong from anna@supplier.example: in quarantine");
    for (const action of ["retry", "release", "discard"]) {
      expect(stdout).toContain(`    inlet ${action} --config ${config} wrong\n`);
    }
    const keptIn = /Its content is kept in (.+)/.exec(stdout)?.[1] ?? "";
    expect(await readdir(keptIn)).toContain("reason.json");
    expect(stdout).toContain(`supply it with inlet password --config ${config} closed`);
    expect(stdout).toMatch(/t1 from anna@supplier.example: delivered, but .*\n.*The hand-off command failed/);
    await expectInlet("status --health", 1, "No daemon answers");
  });
});

describe("another program", () => {
  const ESCAPES = "\u001b]0;owned\u0007\u009b2J\u202e";

  test.each([
    ["a page", "text/html", "<!doctype html><title>Hello</title>"],
    ["half an answer", "application/json", '{"version":1,"at":'],
    ["something else", "application/json", JSON.stringify({ daemon: { inbox: "INBOX", host: ESCAPES } })],
  ])("is not taken for a daemon: %s", async (_name, type, body) => {
    const pretender = (inbox: string) => (response: ServerResponse) =>
      response.writeHead(200, { "content-type": type }).end(body.replace("INBOX", inbox));
    const { inlet, expectInlet } = await onPort(pretender);
    await expectInlet("status --health", 1, "not an Inlet daemon");
    expect((await inlet("status")).stdout).toContain("No daemon answers.");
    const other = await onSocket(pretender);
    const none = expect.stringContaining("No daemon answers.");
    expect(await other.inlet("status")).toEqual({ exitCode: 4, stderr: "", stdout: none });
  });

  test("cannot speak for a daemon that hangs", async () => {
    const url = await listen(
      createServer((_request, response) => response.end('{"ready":true,"reasons":[]}')),
    );
    const { expectInlet } = await onSocket(() => () => {}, { http: { listen: new URL(url).host } });
    await expectInlet("status --health", 1, "The daemon does not answer");
  });

  test("cannot fill the memory with an endless answer", async () => {
    let sent = 0;
    const { inlet } = await onSocket(() => (response) => {
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(1024 ** 2, " "))) sent++;
      };
      response.on("drain", more);
      more();
    });
    expect((await inlet("status")).exitCode).toBe(4);
    expect(sent).toBeLessThan(200);
  });

  test("cannot control the terminal", async () => {
    const { inlet } = await onSocket((inbox) => (response) => {
      const at = new Date().toISOString();
      const engine = { queue: "embedded", role: "all" };
      const daemon = { program: ESCAPES, host: ESCAPES, ...engine, inbox, startedAt: at };
      const transfer = { mailbox: ESCAPES, trackingId: ESCAPES, sender: ESCAPES, reason: ESCAPES };
      const none = "troubles overdue needsRestart mailboxes attention downloading recent causes";
      const status = {
        ...Object.fromEntries(none.split(" ").map((key) => [key, []])),
        version: 1,
        at,
        live: true,
        daemon,
        counts: {},
        totals: { attention: 0, downloading: 0, queued: 1 },
        queued: [{ ...transfer, state: "waiting", group: "queued" }],
      };
      response.end(JSON.stringify(status));
    });
    const { exitCode, stdout } = await inlet("status");
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining("All is well")]);
    expect(stdout.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });

  type Pretender = (inbox: string) => (response: ServerResponse) => void;

  async function onPort(pretender: Pretender) {
    const url = await listen(createServer((_request, response) => pretender(site.inbox)(response)));
    const site = await openSite({}, { http: { listen: new URL(url).host } });
    return site;
  }

  async function onSocket(pretender: Pretender, keys: object = {}) {
    const site = await openSite({}, keys);
    const [path = ""] = socketsOf(site.inbox, process.env);
    const answer = pretender(site.inbox);
    const server = createServer((_request, response) => void answer(response)).listen(path);
    await once(server, "listening");
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return site;
  }
});

test("without an address the health check fails with the reason", async () => {
  await (await openSite()).expectInlet("status --health", 1, "http.listen is false");
});

async function setUp() {
  const wrong = [{ name: "a.txt", text: "x", csvChecksum: "wrong" } as const];
  const transfers = [
    transferPlan({ trackingId: "t1" }),
    transferPlan({ trackingId: "closed", password: "unknown-Pass:9" }),
    transferPlan({ trackingId: "wrong", files: wrong }),
  ];
  const keys = { http: { listen: `127.0.0.1:${await freePort()}` }, handoff: { command: ["false"] } };
  return { ...(await openSite({ transfers }, keys)), keys };
}
