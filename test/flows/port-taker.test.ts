/**
 * Another user's program listens on the daemon's port. It gets no token from any command, and is never taken for the daemon.
 *
 * @module-tag system
 */
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { describeProgram } from "../../src/cli/program.ts";
import { startRun } from "../support/command.ts";
import { install } from "../support/installation.ts";
import { logOf, makeFolder, runProgram, startCommand } from "../support/program.ts";
import { freePort } from "../support/redis-server.ts";
import { transferPlan } from "../support/service.ts";

const STRANGER = 65_534;
const TOKEN = "Visitors-Token:1-of-16";
const READ = ["open", "token", "token-for-all"] as const;

/** Claims to be the daemon of the inbox, and prints what it is sent. */
const TAKER = `
  const [port, inbox] = process.argv.slice(1);
  const { createServer } = require("node:http");
  const none = (keys) => Object.fromEntries(keys.split(" ").map((key) => [key, []]));
  const status = {
    ...none("troubles overdue needsRestart mailboxes attention downloading queued recent causes"),
    version: 1, at: new Date().toISOString(), live: true, counts: {},
    daemon: { program: "9", host: "here", queue: "embedded", role: "all", inbox },
    totals: { attention: 0, downloading: 0, queued: 0 },
  };
  const answers = { "/api/status": status, "/readyz": { ready: true, reasons: [] }, "/healthz": { alive: true } };
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk)).on("end", () => {
      console.log(JSON.stringify({ url: request.url, headers: request.headers, body }));
      response.end(JSON.stringify(answers[request.url] ?? {}));
    });
  });
  server.listen(Number(port), "127.0.0.1", () => console.log("listening"));
`;

/** Every command that reads the configuration, as people call it. */
const CALLS: Readonly<Record<string, readonly string[]>> = {
  once: ["once", "once --dry-run"],
  status: ["status", "status --json", "status --health", "status --health alive"],
  list: ["list", "list --json"],
  show: ["show t1"],
  route: ["route t1"],
  password: ["password closed --no-wait", "password --once-more closed"],
  retry: ["retry closed --no-wait"],
  release: ["release t1 --yes"],
  discard: ["discard t9 --yes"],
  redeliver: ["redeliver t1 --yes --no-wait"],
  poll: ["poll --no-wait"],
  pause: ["pause"],
  resume: ["resume"],
  adopt: ["adopt --yes"],
  anew: ["anew --yes"],
  doctor: ["doctor", "doctor --json"],
  notify: ["notify test"],
  config: ["config check", "config show"],
  verify: ["verify"],
  history: ["history", "history --actions"],
};
/** They read no configuration of a daemon, or are the daemon. */
const OTHERS = ["run", "demo", "init", "verify-address", "completion", "version", "simulate", "api"];

test("every command is tried against another user's program on the port", async () => {
  const names = (await describeProgram()).commands.map((command) => command.name());
  const known = [...Object.keys(CALLS), ...OTHERS, "help"];
  expect(names.filter((name) => !known.includes(name))).toEqual([]);
});

describe.each(READ)("with http.read: %s", (read) => {
  test("I4 no leaks: another user's program on the port of a stopped daemon sees no token, and no command believes it", async () => {
    const site = await prepare(read);
    await site.inlet("once");
    const seen = await site.take();
    for (const line of Object.values(CALLS).flat()) await site.inlet(line);
    const requests = seen();
    // Doctor and the health check look whether the port is taken.
    expect(requests.length).toBeGreaterThan(0);
    expect(requests.filter(({ headers }) => "authorization" in headers)).toEqual([]);
    expect(JSON.stringify(requests)).not.toContain(TOKEN);
    expect(requests.filter(({ body }) => body !== "")).toEqual([]);
    const { exitCode, stdout } = await site.inlet("status");
    expect({ exitCode, stdout }).toEqual({
      exitCode: 4,
      stdout: expect.stringContaining("No daemon answers"),
    });
    const doctor = await site.inlet("doctor");
    expect(doctor.stdout).toContain("another program listens there");
  });

  test("a daemon whose port is taken is found on its socket, and the taker is asked for nothing but the doctor's question", async () => {
    const site = await prepare(read);
    const seen = await site.take();
    const daemon = startRun(site.config);
    await expect.poll(daemon.logged).toContain('"ready"');
    for (const what of ["ready", "alive"])
      await expect.poll(() => site.inlet(`status --health ${what}`)).toMatchObject({ exitCode: 0 });
    expect((await site.inlet("status")).stdout).toContain(`process ${process.pid}, `);
    await writeFile(site.config, "a: [");
    expect((await site.inlet("status")).stdout).toContain(`process ${process.pid}, `);
    expect(seen()).toEqual([]);
    await site.rewrite(site.keys);
    await site.inlet("doctor");
    expect(seen().map(({ url, headers }) => [url, headers["authorization"]])).toEqual([
      ["/api/status", undefined],
    ]);
  });

  test("without a socket, the health check asks the port without a token, and where that is refused whether it lives", async () => {
    const site = await prepare(read);
    const unusable = { RUNTIME_DIRECTORY: site.config };
    const daemon = startRun(site.config, unusable);
    await expect.poll(daemon.logged).toContain('"ready"');
    const [refused, open] = ['{"alive":true}', '{"ready":true,"reasons":[]}'];
    const expected = read === "token-for-all" ? refused : open;
    const healthy = { exitCode: 0, stderr: expect.stringContaining(expected) };
    await expect.poll(() => site.inlet("status --health", unusable)).toMatchObject(healthy);
    expect(await site.inlet("status --health alive", unusable)).toMatchObject({ exitCode: 0 });
  });
});

test("with listen: false, commands and health checks reach the daemon", async () => {
  const site = await prepare("open", { listen: false });
  const daemon = startRun(site.config);
  await expect.poll(daemon.logged).toContain('"ready"');
  const healthy = { exitCode: 0, stderr: expect.stringContaining('"ready":true') };
  await expect.poll(() => site.inlet("status --health")).toMatchObject(healthy);
  expect((await site.inlet("status")).stdout).toContain(`process ${process.pid}, `);
});

async function prepare(read: (typeof READ)[number], more: object = {}) {
  const port = await freePort();
  const file = join(await makeFolder(), "token");
  await writeFile(file, TOKEN, { mode: 0o600 });
  const token = { token: { file } };
  const http = { listen: `127.0.0.1:${port}`, read, ...token, ...more };
  const keys = { http };
  const made = await install(
    {
      transfers: [transferPlan({ trackingId: "t1" }), transferPlan({ trackingId: "closed", password: "?" })],
    },
    keys,
  );
  await chmod(made.folder, 0o755);
  return {
    ...made,
    keys,
    inlet: (line: string, env?: Readonly<Record<string, string>>) =>
      runProgram([...line.split(" "), "--config", made.config], { input: "Wrong-1\n", ...(env && { env }) }),
    async take() {
      const args = ["-e", TAKER, String(port), made.inbox];
      const logged = logOf(startCommand(process.execPath, args, { user: STRANGER }));
      await expect.poll(logged).toContain("listening");
      return () => {
        const lines = logged().split("\n").slice(1).filter(Boolean);
        return lines.map((line) => JSON.parse(line) as Request);
      };
    },
  };
}

interface Request {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}
