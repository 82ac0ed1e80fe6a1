// @module-tag system
/**
 * Hostile callers, consumers that change every delivered folder, and transfers that arrive, all at once, each as a user of its
 * own. `npm run bench -- --case strangers` measures the times, which depend on the machine.
 */
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { chmod, chown, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { installProgram } from "../support/debian.ts";
import { install } from "../support/installation.ts";
import type { Probed } from "../support/prober.ts";
import { finish, LAUNCHER, logOf, makeFolder, startCommand } from "../support/program.ts";
import { freePort } from "../support/redis-server.ts";
import { ROOT } from "../support/root.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const [DAEMON, CONSUMER, NOBODY, GROUP] = [15_000, 16_000, 65_534, 17_001];
const SENDER = "anna@supplier.example";
const BEFORE = Array.from({ length: 8 }, (_, at) => `before-${at}`);
const MEANWHILE = Array.from({ length: 4 }, (_, at) => `meanwhile-${at}`);
const MIB = 1024;

test("I8 bounded: with all strangers at once, every probe is answered, transfers are delivered, memory stays small, and the log names each kind once or twice", async () => {
  const port = await freePort();
  const http = { listen: `127.0.0.1:${port}`, actions: true, token: "0123456789abcdef" };
  const access = { group: GROUP, folderMode: "0770", fileMode: "0640" };
  const plan = (trackingId: string) =>
    transferPlan({ trackingId, files: [{ name: "a.txt", text: trackingId }] });
  const { folder, config, inbox, simulator } = await install(
    { transfers: BEFORE.map(plan) },
    { http, handoff: access, defaults: { layout: "{mailbox}/{sender}/{trackingId}" } },
  );
  await mkdir(inbox, { mode: 0o750 });
  await chmod(folder, 0o755);
  await chown(inbox, DAEMON, GROUP);
  for (const path of [folder, config]) await chown(path, DAEMON, DAEMON);
  const run = join(await makeFolder(), "run");
  await mkdir(run, { mode: 0o700 });
  await chmod(join(run, ".."), 0o755);
  await chown(run, DAEMON, DAEMON);
  const setpriv = await installProgram("setpriv", "util-linux");
  const startAs = (user: number, group: number, program: string, ...args: string[]) => {
    const who = ["--reuid", String(user), "--regid", String(group), "--clear-groups"];
    const groups = user === DAEMON ? [...who.slice(0, 4), "--groups", String(GROUP)] : who;
    return startCommand(setpriv, [...groups, process.execPath, program, ...args], {
      env: { RUNTIME_DIRECTORY: run, HOME: folder },
    });
  };
  const support = (name: string) => join(ROOT, "test/support", name);
  const sender = join(inbox, MAILBOX, SENDER);
  const daemon = startAs(DAEMON, DAEMON, LAUNCHER, "run", "--config", config);
  const logged = logOf(daemon);
  const fileOf = (trackingId: string) => join(sender, trackingId, "a.txt");
  await expect.poll(() => BEFORE.filter((id) => !existsSync(fileOf(id)))).toEqual([]);
  const callers = startAs(NOBODY, NOBODY, support("strangers.ts"), "callers", String(port), ...BEFORE);
  const consumers = startAs(CONSUMER, GROUP, support("strangers.ts"), "consumers", sender);
  const failed = [callers, consumers].map((child) => {
    let text = "";
    child.stderr?.on("data", (chunk) => {
      text += String(chunk);
    });
    return () => text;
  });
  const prober = startCommand(process.execPath, [support("prober.ts"), String(port)]);
  const named = () => {
    const lines = logged()
      .split("\n")
      .filter((line) => line.includes("callers of the console exceed a limit"));
    return Object.groupBy(
      lines.map((line) => String(JSON.parse(line).reason)),
      (reason) => reason,
    );
  };
  for (const trackingId of MEANWHILE) {
    simulator.addTransfer(plan(trackingId));
    await expect.poll(() => existsSync(fileOf(trackingId))).toBe(true);
    expect(await readFile(fileOf(trackingId), "utf8")).toBe(trackingId);
  }
  // The first ones are closed after 10 s.
  await expect
    .poll(() => Object.keys(named()))
    .toEqual(expect.arrayContaining(["unfinished", "wrong-token"]));
  const { stdout } = await finish(prober);
  const { probes, unanswered } = JSON.parse(stdout) as Probed;
  const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${daemon.pid}/status`, "utf8"))?.[1];
  expect([probes > 0, unanswered, Number(peak) / MIB < 300]).toEqual([true, 0, true]);
  expect([callers.exitCode, consumers.exitCode, ...failed.map((text) => text())]).toEqual([
    null,
    null,
    "",
    "",
  ]);
  // Each at once, and once a minute.
  const most = Math.max(...Object.values(named()).map((lines) => lines?.length ?? 0));
  expect(most).toBeLessThanOrEqual(2);
  callers.kill("SIGKILL");
  consumers.kill("SIGKILL");
  const ended = once(daemon, "exit");
  daemon.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
});
