/** `status`: mailboxes and transfers now, from the running daemon, else from the work folder. */
import { type IncomingMessage, request } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { type Command, Option } from "commander";
import * as v from "valibot";
import { systemClock } from "../base/clock.ts";
import { asFault } from "../base/faults.ts";
import { type LoadOptions, loadHttp, loadSettings } from "../config/load.ts";
import type { HttpSettings, Settings } from "../config/settings.ts";
import { describeDaemon, keptIn, readDeliveries, readGone } from "../daemon/facts.ts";
import { peekHandoffs } from "../handoff/summary.ts";
import { peekLedger } from "../ledger/peek.ts";
import { STATES } from "../model/record.ts";
import { STATUS_VERSION, type Status, type Trouble } from "../model/status.ts";
import { Board } from "../observe/board.ts";
import type { Context, Outcome, Run } from "./context.ts";
import { addConfig } from "./options.ts";
import { printJson, say, widthOf } from "./printing.ts";
import { formatStatus } from "./status-text.ts";

interface StatusOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly watch?: boolean;
  readonly health?: "ready" | "alive";
}

const REDRAW_MS = 1_000;
const NO_DAEMON = "No daemon answers at http.listen.";

export function define(command: Command, run: Run): void {
  addConfig(command)
    .option("--json", "print the status as JSON")
    .option("--watch", "keep running, and redraw every second")
    .addOption(
      new Option(
        "--health [what]",
        "only exit with 0 or 1: whether the daemon can work (ready), or at least is not stuck (alive)",
      )
        .choices(["ready", "alive"])
        .preset("ready"),
    )
    .addHelpText(
      "after",
      "\nExit code 0: a daemon answers, and all is well; 3: a transfer, the disk or the configuration needs attention; 4: a mailbox or the queue cannot be reached, or no daemon answers.\nWithout a daemon, it shows the state in the work folder, and live is false in JSON.",
    )
    .action((options: StatusOptions) => run((context) => show(context, options)));
}

async function show(context: Context, options: StatusOptions): Promise<Outcome> {
  const { config: path } = options;
  const load = { env: context.env, path, ignoreSecrets: true };
  if (options.health !== undefined) return showHealth(context, load, options.health);
  const settings = await loadSettings(load);
  if (options.watch && context.stdout.isTTY) return watch(context, settings);
  const { status, instead } = await readStatus(settings, context.stop);
  if (options.json) printJson(context, status);
  else context.stdout.write(`${formatStatus(status, instead, context.stdout)}\n`);
  return outcomeOf(status);
}

/** For health checks of containers, which show the printed line. The exit code is always 0 or 1. */
async function showHealth(context: Context, load: LoadOptions, what: "ready" | "alive"): Promise<Outcome> {
  const http = await loadHttp(load).catch((error: unknown) => {
    say(context, asFault(error).message);
    return "wrong" as const;
  });
  if (http === "wrong") return "failed";
  if (http === undefined) {
    say(context, "The health of the daemon cannot be checked: http.listen is false.");
    return "failed";
  }
  const answer = await requestDaemon(http, what === "ready" ? "/readyz" : "/healthz", context.stop);
  const health = answer === undefined ? undefined : parseHealth(answer.body);
  if (health === undefined) {
    say(
      context,
      answer === undefined ? NO_DAEMON : "Another program answers at http.listen, not an Inlet daemon.",
    );
    return "failed";
  }
  say(context, JSON.stringify(health));
  return answer?.status === 200 ? "fine" : "failed";
}

/** Runs until Ctrl-C, which is its normal end. */
async function watch(context: Context, settings: Settings): Promise<Outcome> {
  const { stdout, stop } = context;
  while (!stop.aborted) {
    const { status, instead } = await readStatus(settings, stop);
    if (stop.aborted) break;
    const lines = fitInto(stdout, formatStatus(status, instead, stdout).split("\n"));
    stdout.write(`\u001b[H${lines.map((line) => `${line}\u001b[K\n`).join("")}\u001b[J`);
    await pause(REDRAW_MS, undefined, { signal: stop }).catch(() => {});
  }
  return "fine";
}

/** As many lines as fit on the screen: a long one takes several rows. */
function fitInto({ rows, columns }: NodeJS.WriteStream, lines: readonly string[]): readonly string[] {
  let left = (rows || 25) - 1;
  const end = lines.findIndex((line) => {
    left -= Math.max(1, Math.ceil(widthOf(line) / (columns || 80)));
    return left < 0;
  });
  return end < 0 ? lines : lines.slice(0, end);
}

interface Reading {
  readonly status: Status;
  /** A sentence that says why the status is not the daemon's. */
  readonly instead: string | undefined;
}

async function readStatus(settings: Settings, signal: AbortSignal): Promise<Reading> {
  const { http, inbox } = settings;
  const answer = await requestDaemon(http, "/api/status", signal);
  const status = answer?.status === 200 ? parseStatus(answer.body) : undefined;
  if (status?.daemon.inbox === inbox) return { status, instead: undefined };
  return { status: await peekStatus(settings), instead: describeOther(http !== undefined, answer, status) };
}

function describeOther(isAsked: boolean, answer: unknown, status: Status | undefined): string {
  if (!isAsked) return "The daemon cannot be reached: http.listen is false.";
  if (answer === undefined) return NO_DAEMON;
  return status === undefined
    ? "No daemon answers: another program listens at http.listen."
    : `No daemon of this inbox answers: the one at http.listen serves ${status.daemon.inbox}.`;
}

/** Problems with an exit code of 3: the service is reachable. */
const FOR_PEOPLE: ReadonlySet<string> = new Set(["DISK_FULL", "ARRIVAL_MISSED", "ENTRIES_UNUSABLE"]);

function outcomeOf({ live, troubles, totals }: Status): Outcome {
  const isForPeople = ({ what, code }: Trouble) => what === "configuration" || FOR_PEOPLE.has(code);
  if (!troubles.every(isForPeople)) return "unreachable";
  if (totals.attention > 0 || troubles.length > 0) return "attention";
  return live ? "fine" : "unreachable";
}

/** The status without a daemon, from the work folder. */
export async function peekStatus(settings: Settings): Promise<Status> {
  const { work, mailboxes } = settings;
  const board = new Board(describeDaemon(settings), mailboxes, systemClock, keptIn(work));
  const ledger = peekLedger(work);
  const open = await Array.fromAsync(ledger.open());
  board.learn([...open, ...(await Array.fromAsync(ledger.quarantined()))]);
  board.recall(await readDeliveries(work), await readGone(work, systemClock.now()));
  const readEnd = (name: string, round: number) => ledger.readEnd(name, round);
  const summary = await peekHandoffs(work, settings.handoff, readEnd);
  board.listener({ type: "handoffs-checked", summary });
  const status = board.read();
  // The board describes this process, which is not a daemon.
  return { ...status, live: false, daemon: { ...status.daemon, pid: undefined, startedAt: undefined } };
}

const TIMEOUT_MS = 5_000;
/** Enough for many thousands of mailboxes. */
const MOST_BYTES = 32 * 1024 ** 2;

interface DaemonAnswer {
  readonly status: number;
  readonly body: string;
}

/** `undefined` without a complete answer in time. The answer is not trusted: any program may listen there. */
export async function requestDaemon(
  http: HttpSettings | undefined,
  path: string,
  signal: AbortSignal,
): Promise<DaemonAnswer | undefined> {
  if (http === undefined) return undefined;
  const { listen } = http;
  const place =
    "path" in listen ? { socketPath: listen.path } : { host: reachable(listen.host), port: listen.port };
  const { promise, resolve, reject } = Promise.withResolvers<DaemonAnswer>();
  const within = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  // A host name that every daemon accepts.
  const headers = { host: "localhost" };
  request({ ...place, path, headers, agent: false, signal: within }, (response) => {
    readText(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
  })
    .once("error", reject)
    .end();
  return promise.catch(() => undefined);
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += (chunk as Buffer).length;
    // Leaving the loop closes the connection.
    if (bytes > MOST_BYTES) throw new Error("the answer is too large");
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString();
}

/** A daemon that listens on every address is reached on the loopback one. */
function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}

const Time = v.pipe(v.string(), v.isoTimestamp());
const Text = v.optional(v.string());
const State = v.picklist(STATES);

const TroubleShape = v.looseObject({
  what: v.string(),
  since: Time,
  code: v.string(),
  message: v.string(),
  advice: v.string(),
});

const TransferShape = v.looseObject({
  mailbox: v.string(),
  trackingId: v.string(),
  sender: v.string(),
  state: State,
  since: v.optional(Time),
  reason: Text,
  message: Text,
  until: v.optional(Time),
  expires: v.optional(Time),
  commands: v.optional(v.array(v.string())),
  keptIn: Text,
  progress: v.optional(
    v.looseObject({
      doneBytes: v.number(),
      totalBytes: v.number(),
      bytesPerSecond: v.number(),
      secondsLeft: v.optional(v.number()),
    }),
  ),
});

const MailboxShape = v.looseObject({
  name: v.string(),
  email: v.string(),
  paused: v.boolean(),
  pollSeconds: v.number(),
  lastPoll: v.optional(Time),
  lastSuccess: v.optional(Time),
  nextPoll: v.optional(Time),
  listed: v.optional(v.number()),
  tokenValidUntil: v.optional(Time),
  quietUntil: v.optional(Time),
  trouble: v.optional(TroubleShape),
});

/** Checks the keys that are printed; keys of a later version are allowed. */
const StatusShape = v.looseObject({
  version: v.literal(STATUS_VERSION),
  at: Time,
  live: v.optional(v.literal(true), true),
  daemon: v.looseObject({
    program: v.string(),
    host: v.string(),
    pid: v.number(),
    startedAt: Time,
    queue: v.picklist(["embedded", "redis"]),
    role: v.picklist(["all", "worker", "scheduler"]),
    inbox: v.string(),
    config: Text,
  }),
  troubles: v.array(TroubleShape),
  needsRestart: v.array(v.string()),
  mailboxes: v.array(MailboxShape),
  counts: v.record(v.string(), v.number()),
  totals: v.object({ attention: v.number(), inHand: v.number(), queued: v.number() }),
  waitingSince: v.optional(Time),
  attention: v.array(TransferShape),
  inHand: v.array(TransferShape),
  queued: v.array(TransferShape),
  recent: v.array(
    v.looseObject({
      mailbox: v.string(),
      trackingId: v.string(),
      sender: v.string(),
      folder: v.string(),
      at: Time,
      tookSeconds: v.optional(v.number()),
    }),
  ),
  load: v.array(v.unknown()),
});

/** `undefined` for any other text. */
export function parseStatus(text: string): Status | undefined {
  return parse(StatusShape, text) as Status | undefined;
}

const HealthShape = v.union([
  v.object({ ready: v.boolean(), reasons: v.array(v.string()) }),
  v.object({ alive: v.boolean(), stuck: v.optional(v.string()) }),
]);

function parseHealth(text: string): v.InferOutput<typeof HealthShape> | undefined {
  return parse(HealthShape, text);
}

function parse<Schema extends v.GenericSchema>(
  schema: Schema,
  text: string,
): v.InferOutput<Schema> | undefined {
  try {
    const result = v.safeParse(schema, JSON.parse(text));
    return result.success ? result.output : undefined;
  } catch {
    return undefined;
  }
}
