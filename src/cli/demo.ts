/** `demo`: a simulated service, a daemon and sample transfers in a temporary folder, with comments. */
import { mkdtemp, readdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { styleText } from "node:util";
import type { Command } from "commander";
import {
  DEMO_MAILBOX,
  demoScenario,
  REVOKED_ID,
  SUPPLIER,
  WAITING_ID,
  WAITING_PASSWORD,
} from "../../simulator/demo.ts";
import { openSimulator } from "../../simulator/open.ts";
import type { Simulator } from "../../simulator/simulator.ts";
import type { Fault } from "../base/faults.ts";
import { Secret } from "../base/secret.ts";
import type { Settings } from "../config/settings.ts";
import { runDaemon } from "../daemon.ts";
import { Quarantine } from "../ledger/quarantine.ts";
import { type Emit, listenTo } from "../model/events.ts";
import { hasEnded, type TransferRecord } from "../model/record.ts";
import { type Context, type Run, untilStopped } from "./context.ts";
import type { Outcome } from "./exit-codes.ts";
import { formatProgress, printable } from "./printing.ts";

export function define(demo: Command, run: Run): void {
  demo
    .option("--exit", "exit when all transfers are settled, instead of running until Ctrl-C")
    .action(run(runDemo));
}

async function runDemo(
  context: Context,
  { exit: exits = false }: { readonly exit?: boolean },
): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), "inlet-demo-"));
  const simulator = await openSimulator(demoScenario);
  const settings = demoSettings(folder, simulator);
  const stop = new AbortController();
  context.stop.addEventListener("abort", () => stop.abort(), { once: true });
  const settled = new Set<string>();
  const allSettled = Promise.withResolvers<void>();
  stop.signal.addEventListener("abort", () => allSettled.resolve(), { once: true });
  const onEvent = narrate(context, settings, simulator, (record) => {
    settled.add(record.trackingId);
    if (settled.size === simulator.transfers().length) allSettled.resolve();
  });
  try {
    print(context, `A simulated transfer service listens on ${simulator.url}.`);
    print(context, `The daemon delivers the transfers of ${DEMO_MAILBOX} to ${settings.inbox}.\n`);
    const daemon = runDaemon(settings, { mode: "run", stop: stop.signal, graceMs: 5_000, onEvent });
    await Promise.race([allSettled.promise, daemon]);
    if (!context.stop.aborted) await showEnd(context, settings, exits);
    if (!exits) await untilStopped(context.stop);
    stop.abort();
    await daemon;
  } finally {
    await simulator.close();
  }
  return "fine";
}

function demoSettings(folder: string, simulator: Simulator): Settings {
  const secret = (text: string) => ({ described: "the demo", read: async () => new Secret(text) });
  const service = {
    baseUrl: new URL(simulator.url),
    clientId: secret(simulator.clientId),
    token: undefined,
    acceptLanguage: "en",
    idListForm: "repeat" as const,
    ca: undefined,
    cert: undefined,
    key: undefined,
    proxy: { http: "", https: "", except: "" },
    timeoutMs: 10_000,
  };
  return {
    source: "the demo",
    inbox: join(folder, "inbox"),
    work: join(folder, "inbox", ".inlet"),
    state: join(folder, "state"),
    queue: "embedded",
    mailboxes: [
      {
        name: DEMO_MAILBOX,
        email: DEMO_MAILBOX,
        pollMs: 500,
        fetch: "auto",
        verify: "require",
        layout: "{mailbox}/{sender}/{trackingId}",
        passwords: [{ sender: SUPPLIER.sender, trackingId: undefined, password: secret(SUPPLIER.password) }],
        passwordAttempts: 2,
        paused: false,
        service,
      },
    ],
    limits: {
      transfers: 2,
      filesPerTransfer: 4,
      minFreeBytes: 0,
      maxTransferBytes: 2 ** 40,
      maxFiles: 10_000,
    },
    handoff: { fileMode: 0o640, folderMode: 0o750, marker: undefined },
    keep: { ledgerMs: undefined, historyMs: undefined },
    // Any free port: a daemon may run on this machine.
    http: { listen: { host: "127.0.0.1", port: 0 }, actions: false, tokens: new Map(), hosts: [] },
    warnings: [],
  };
}

/** Prints what happens, and plays the people: one supplies a password, one revokes a transfer. */
function narrate(
  context: Context,
  settings: Settings,
  simulator: Simulator,
  onSettled: (record: TransferRecord) => void,
): Emit {
  const startedMs = performance.now();
  let drawnMs = 0;
  const printFault = ({ fault }: { readonly fault: Fault }) => print(context, `✗ ${fault.message}`);
  return listenTo({
    "poll-failed": printFault,
    "disk-failed": printFault,
    "order-failed": printFault,
    "transfer-stuck": printFault,
    "console-opened": ({ address }) => print(context, `The console is ${address}\n`),
    "console-failed": ({ address, reason }) => print(context, `✗ No console on ${address}: ${reason}`),
    "transfer-discovered": ({ record: { trackingId, sender } }) =>
      print(context, `• ${trackingId} from ${sender}: discovered`),
    "transfer-progressed": ({ record, doneBytes, totalBytes }) => {
      const nowMs = performance.now();
      if (totalBytes < 1024 ** 2 || nowMs - drawnMs < 100) return;
      drawnMs = nowMs;
      const line = formatProgress(record.trackingId, doneBytes, totalBytes, (nowMs - startedMs) / 1000);
      if (context.stderr.isTTY)
        context.stderr.write(`\r\u001b[K${line.slice(0, (context.stderr.columns || 80) - 1)}`);
    },
    "transfer-changed": ({ record }) => {
      const { trackingId, state, message, folder } = record;
      if (hasEnded(record)) onSettled(record);
      if (state === "delivered")
        print(context, `${mark(context, "green", "✓")} ${trackingId}: delivered to ${folder}`);
      else if (state === "quarantined")
        print(context, `${mark(context, "red", "✗")} ${trackingId}: quarantined. ${message}`);
      else if (state === "gone")
        print(context, `${mark(context, "yellow", "–")} ${trackingId}: gone. ${message}`);
      else if (state === "waiting") {
        print(context, `${mark(context, "yellow", "…")} ${trackingId}: waiting. ${message}`);
        void playPeople(context, settings, simulator, trackingId);
      }
    },
  });
}

async function playPeople(
  context: Context,
  settings: Settings,
  simulator: Simulator,
  trackingId: string,
): Promise<void> {
  if (trackingId === WAITING_ID) {
    print(
      context,
      `  (an operator writes its password into ${join(settings.state, "passwords", trackingId)})`,
    );
    await writeFile(join(settings.state, "passwords", trackingId), `${WAITING_PASSWORD}\n`);
  }
  if (trackingId === REVOKED_ID) {
    print(context, `  (its sender revokes ${trackingId})`);
    simulator.revoke(trackingId);
  }
}

async function showEnd(context: Context, settings: Settings, exits: boolean): Promise<void> {
  print(context, `\nAll transfers are settled. A consumer finds this in ${settings.inbox}:`);
  await showTree(context, settings.inbox, "  ");
  print(
    context,
    `\nQuarantined transfers are kept, with their reasons, in ${new Quarantine(settings.work).folder}.`,
  );
  if (!exits) print(context, "The service and the daemon keep running: stop them with Ctrl-C.");
  print(context, `Delete the folder when you are done:\n  rm -r ${join(settings.inbox, "..")}`);
}

async function showTree(context: Context, folder: string, indent: string): Promise<void> {
  const entries = (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.name !== ".inlet");
  const shown = entries.toSorted((a, b) => (a.name < b.name ? -1 : 1)).slice(0, 6);
  for (const entry of shown) {
    print(context, `${indent}${entry.name}${entry.isDirectory() ? "/" : ""}`);
    if (entry.isDirectory()) await showTree(context, join(folder, entry.name), `${indent}  `);
  }
  if (entries.length > shown.length) print(context, `${indent}… and ${entries.length - shown.length} more`);
}

function mark({ stdout }: Context, colour: "green" | "red" | "yellow", sign: string): string {
  return styleText(colour, sign, { stream: stdout });
}

/** Text from outside cannot start a new line. */
function print({ stdout, stderr }: Context, text: string): void {
  if (stderr.isTTY) stderr.write("\r\u001b[K");
  const safe = text.split("\n").map((line) => (line.includes("\u001b") ? line : printable(line)));
  stdout.write(`${safe.join("\n")}\n`);
}
