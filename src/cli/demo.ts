/** `demo`: a simulated service, a daemon and sample transfers in a temporary folder, with comments. */
import { mkdtemp, readdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
import { loadSettings } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { runDaemon } from "../daemon.ts";
import { Quarantine } from "../ledger/quarantine.ts";
import { type Emit, listenTo } from "../model/events.ts";
import { hasEnded, type State, type TransferRecord } from "../model/record.ts";
import { type Context, type Outcome, type Runner, untilStopped } from "./command.ts";
import { printableLines } from "./printing.ts";

export function define(demo: Command, run: Runner): void {
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
  const settings = await loadDemo(folder, simulator);
  const end = new AbortController();
  const stop = AbortSignal.any([context.stop, end.signal]);
  const settled = new Set<string>();
  const allSettled = Promise.withResolvers<void>();
  const onEvent = narrate(context, settings, simulator, (record) => {
    settled.add(record.trackingId);
    if (settled.size === simulator.transfers().length) allSettled.resolve();
  });
  try {
    print(context, `A simulated transfer service listens on ${simulator.url}.`);
    print(context, `The daemon delivers the transfers of ${DEMO_MAILBOX} to ${settings.inbox}.\n`);
    // Ends only when it is stopped, or fails.
    const daemon = runDaemon(settings, { mode: "run", stop, graceMs: 5_000, onEvent });
    await Promise.race([allSettled.promise, daemon]);
    if (!context.stop.aborted) await showEnd(context, settings, exits);
    if (!exits) await untilStopped(context.stop);
    end.abort();
    await daemon;
  } finally {
    await simulator.close();
  }
  return "fine";
}

/** Variables of the environment do not apply to the demo. */
async function loadDemo(folder: string, { url: baseUrl, clientId }: Simulator): Promise<Settings> {
  const path = join(folder, "inlet.yaml");
  const document = {
    service: { baseUrl, clientId },
    inbox: join(folder, "inbox"),
    state: join(folder, "state"),
    mailboxes: [{ email: DEMO_MAILBOX, passwords: [SUPPLIER] }],
    limits: { transfers: 2, minFreeSpace: 0 },
    // Any free port: a daemon may run on this machine.
    http: { listen: "127.0.0.1:0" },
  };
  // JSON is YAML too.
  await writeFile(path, JSON.stringify(document), { mode: 0o600 });
  const { mailboxes, ...settings } = await loadSettings({ path, env: {} });
  return { ...settings, sockets: [], mailboxes: mailboxes.map((mailbox) => ({ ...mailbox, pollMs: 500 })) };
}

/** Prints what happens, and plays the people: one supplies a password, one revokes a transfer. */
function narrate(
  context: Context,
  settings: Settings,
  simulator: Simulator,
  onSettled: (record: TransferRecord) => void,
): Emit {
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
    "transfer-changed": ({ record }) => {
      const { trackingId, state, message, folder } = record;
      if (hasEnded(record)) onSettled(record);
      if (SIGNS[state] === undefined) return;
      const what = state === "delivered" ? `delivered to ${folder}` : `${state}. ${message}`;
      print(context, `${SIGNS[state]} ${trackingId}: ${what}`);
      if (state === "waiting") void playPeople(context, settings, simulator, trackingId);
    },
  });
}

const SIGNS: Readonly<Partial<Record<State, string>>> = {
  delivered: "✓",
  quarantined: "✗",
  gone: "–",
  waiting: "…",
};

async function playPeople(
  context: Context,
  settings: Settings,
  simulator: Simulator,
  trackingId: string,
): Promise<void> {
  if (trackingId === WAITING_ID) {
    const path = join(settings.state, "passwords", trackingId);
    print(context, `  (an operator writes its password into ${path})`);
    await writeFile(path, `${WAITING_PASSWORD}\n`);
  }
  if (trackingId === REVOKED_ID) {
    print(context, `  (its sender revokes ${trackingId})`);
    simulator.revoke(trackingId);
  }
}

async function showEnd(context: Context, settings: Settings, exits: boolean): Promise<void> {
  print(context, `\nAll transfers are settled. A consumer finds this in ${settings.inbox}:`);
  await showTree(context, settings.inbox, "  ");
  const { folder } = new Quarantine(settings.work);
  print(context, `\nQuarantined transfers are kept, with their reasons, in ${folder}.`);
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

function print({ stdout }: Context, text: string): void {
  stdout.write(`${printableLines(text)}\n`);
}
