/** What systemd is told, and when. A stand-in for systemd-notify writes it down; the real one speaks in test/systemd. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openHost, type Vitals } from "../../../src/host/systemd.ts";
import { listenTo } from "../../../src/model/events.ts";
import type { Status } from "../../../src/model/status.ts";
import { makeFolder } from "../../support/program.ts";
import { SIGNAL } from "../../support/service.ts";

test("is ready when a first poll was tried, not before, and says when it stops", async () => {
  const { host, told } = await setUp();
  const vitals = new TestVitals();
  const stop = new AbortController();
  const attended = host?.attend(vitals, stop.signal);
  await host?.reloading(async () => {});
  await expect.poll(told).toEqual(["STATUS=0 mailboxes are polled"]);
  vitals.ready = true;
  vitals.change();
  await expect.poll(told).toHaveLength(2);
  expect((await told())[1]).toBe("READY=1 STATUS=0 mailboxes are polled");
  stop.abort();
  await expect.poll(async () => (await told()).at(-1)).toMatch(/^STOPPING=1 STATUS=Stopping/);
  vitals.change();
  await attended?.close();
  expect(await told()).toHaveLength(3);
});

test("says that it reads its settings again, and that it is over also where they are refused", async () => {
  const { host, told } = await setUp();
  const vitals = new TestVitals();
  vitals.ready = true;
  const attended = host?.attend(vitals, SIGNAL);
  onTestFinished(() => attended?.close());
  await expect.poll(told).toEqual([expect.stringContaining("READY=1 ")]);
  const order: string[] = [];
  await host?.reloading(async () => {
    order.push(...(await told()));
  });
  expect(order.slice(1)).toEqual([expect.stringMatching(/^RELOADING=1 MONOTONIC_USEC=\d+$/)]);
  expect((await told()).at(-1)).toBe("READY=1");
  await expect(host?.reloading(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect((await told()).at(-1)).toBe("READY=1");
});

test("feeds the watchdog as long as what runs gets on, and tells once what does not", async () => {
  const { host, told, heard } = await setUp({ WATCHDOG_USEC: "90000", WATCHDOG_PID: String(process.pid) });
  const vitals = new TestVitals();
  const attended = host?.attend(vitals, SIGNAL);
  onTestFinished(() => attended?.close());
  const fed = async () => (await told()).filter((line) => line === "WATCHDOG=1").length;
  await expect.poll(fed).toBeGreaterThan(2);
  vitals.silent = "the download of t1";
  await expect.poll(() => heard).toEqual(["stuck: the download of t1"]);
  // One may be on its way.
  await new Promise((resolve) => setTimeout(resolve, 200));
  const before = await fed();
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(await fed()).toBe(before);
  expect(heard).toHaveLength(1);
});

test("feeds no watchdog that is for another process", async () => {
  const { host, told } = await setUp({ WATCHDOG_USEC: "30000", WATCHDOG_PID: "1" });
  const attended = host?.attend(new TestVitals(), SIGNAL);
  await expect.poll(told).not.toEqual([]);
  await new Promise((resolve) => setTimeout(resolve, 100));
  await attended?.close();
  expect(await told()).not.toContain("WATCHDOG=1");
});

test("says once where systemd cannot be told anything", async () => {
  const heard: string[] = [];
  const env = { NOTIFY_SOCKET: "/nowhere", PATH: await makeFolder() };
  const host = openHost(env, listenTo({ "supervisor-unreachable": ({ reason }) => heard.push(reason) }));
  const attended = host?.attend(new TestVitals(), SIGNAL);
  onTestFinished(() => attended?.close());
  await expect.poll(() => heard).toEqual(["systemd-notify was not found"]);
});

test("is nothing where nobody wants to be told", () => {
  expect(openHost({}, () => {})).toBe(undefined);
});

class TestVitals implements Vitals {
  ready = false;
  silent: string | undefined;
  change: () => void = () => {};

  status(): Status {
    return {
      troubles: [],
      totals: { attention: 0, inHand: 0, queued: 0 },
      attention: [],
      mailboxes: [],
      recent: [],
      inHand: [],
      queued: [],
    } as unknown as Status;
  }

  isReady(): boolean {
    return this.ready;
  }

  stuck(): string | undefined {
    return this.silent;
  }

  onChange(listener: () => void): () => void {
    this.change = listener;
    return () => {
      this.change = () => {};
    };
  }
}

async function setUp(env: Readonly<Record<string, string>> = {}) {
  const folder = await makeFolder();
  const note = join(folder, "told");
  const bin = join(folder, "bin");
  await mkdir(bin);
  await writeFile(join(bin, "systemd-notify"), `#!/bin/sh\necho "$*" >> '${note}'\n`, { mode: 0o755 });
  const heard: string[] = [];
  const host = openHost(
    { NOTIFY_SOCKET: join(folder, "socket"), PATH: bin, ...env },
    listenTo({
      "supervisor-unreachable": ({ reason }) => heard.push(`deaf: ${reason}`),
      "work-stuck": ({ work }) => heard.push(`stuck: ${work}`),
    }),
  );
  const told = async () => (await readFile(note, "utf8").catch(() => "")).split("\n").filter(Boolean);
  return { host, told, heard };
}
