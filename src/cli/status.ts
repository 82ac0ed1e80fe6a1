/** `status`: mailboxes and transfers now, from the running daemon, else from the work folder. */
import { type IncomingMessage, request } from "node:http";
import { type Command, Option } from "commander";
import * as v from "valibot";
import { systemClock } from "../base/clock.ts";
import { asFault, Fault } from "../base/faults.ts";
import { findLastAddress } from "../config/last-address.ts";
import { type LoadOptions, loadHttp, loadSettings } from "../config/load.ts";
import { DEFAULT_PATH, type HttpSettings, handoffOf, type Settings } from "../config/settings.ts";
import { describeDaemon, keptIn, readDeliveries, readGone } from "../daemon/facts.ts";
import { peekHandoffs } from "../handoff/summary.ts";
import { peekLedger } from "../ledger/peek.ts";
import { STATES } from "../model/record.ts";
import { STATUS_VERSION, type Status } from "../model/status.ts";
import { Board } from "../observe/board.ts";
import type { Context, Run } from "./context.ts";
import { addExitCodes, type Outcome, outcomeOfFault } from "./exit-codes.ts";
import { addConfig } from "./options.ts";
import { explainPermission, isPermissionFault } from "./permission.ts";
import { printJson, say } from "./printing.ts";
import { formatStatus, type Reading } from "./status-text.ts";
import { watchStatus } from "./status-watch.ts";

interface StatusOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly watch?: boolean;
  readonly health?: "ready" | "alive";
}

const HELP = `
Without a daemon, it shows the state in the work folder, and live is false in JSON. While the configuration is not valid,
it shows the status of the running daemon, and the problem.`;

const NO_DAEMON = "No daemon answers at http.listen.";

export function define(command: Command, run: Run): void {
  addConfig(command)
    .option("--json", "print the status as JSON")
    .option("--watch", "show it on the whole screen, and redraw every second, until q or Ctrl-C")
    .addOption(
      new Option(
        "--health [what]",
        "only check the daemon, and exit with 0 or 1; ready (the default): it can do its work; alive: it is not stuck",
      )
        .choices(["ready", "alive"])
        .preset("ready"),
    )
    .addHelpText("after", HELP)
    .action((options: StatusOptions) => run((context) => show(context, options)));
  addExitCodes(command, {
    fine: "a daemon answers, and nothing needs attention",
    attention: "a transfer, a mailbox, the disk or the configuration needs a person",
    denied: "this user may not read the configuration, the work folder or the socket",
    unreachable: "no daemon answers, whatever waits; or the service or the queue cannot be reached",
  });
}

async function show(context: Context, options: StatusOptions): Promise<Outcome> {
  const { config: path } = options;
  const load = { env: context.env, path, ignoreSecrets: true };
  if (options.health !== undefined) return showHealth(context, load, options.health);
  const read = await openReader(load, context.stop);
  if (options.watch && context.stdout.isTTY) return watchStatus(context, read);
  const { status, instead } = await read();
  if (options.json) printJson(context, status);
  else context.stdout.write(`${formatStatus(status, instead, context.stdout)}\n`);
  return outcomeOf(status);
}

/** Throws `CONFIG_INVALID` if the configuration is not valid, and no daemon that was started with it answers. */
async function openReader(load: LoadOptions, signal: AbortSignal): Promise<() => Promise<Reading>> {
  try {
    const settings = await loadSettings(load);
    return () => readStatus(settings, signal);
  } catch (error) {
    const fault = await explainPermission(asFault(error));
    if (fault.code !== "CONFIG_INVALID") throw fault;
    const { file, addresses } = await findLastAddress(load);
    for (const http of addresses) {
      const read = () => readOldStatus(http, file, fault, signal);
      if ((await read()) === undefined) continue;
      return async () => {
        const reading = await read();
        if (reading === undefined) throw fault;
        return reading;
      };
    }
    throw fault;
  }
}

/** The status of a daemon that keeps the settings it had before the file became invalid; `undefined` without one. */
async function readOldStatus(
  http: HttpSettings,
  file: string,
  fault: Fault,
  signal: AbortSignal,
): Promise<Reading | undefined> {
  const answer = await requestDaemon(http, "/api/status", signal);
  const status = answer?.status === 200 ? parseStatus(answer.body) : undefined;
  if (status === undefined || (status.daemon.config ?? DEFAULT_PATH) !== file) return undefined;
  const isReported = status.troubles.some(({ what }) => what === "configuration");
  const { code, message } = fault;
  const advice = `The daemon keeps its old settings, and does not start again with this file. ${FIX_IT}`;
  const trouble = { what: "configuration", since: status.at, code, message, advice };
  const troubles = isReported ? status.troubles : [trouble, ...status.troubles];
  return { status: { ...status, troubles }, instead: undefined };
}

const FIX_IT = "Correct it, and check it with inlet config check.";

/** For health checks of containers, which show the printed line. The exit code is always 0 or 1. */
async function showHealth(context: Context, load: LoadOptions, what: "ready" | "alive"): Promise<Outcome> {
  try {
    const http = await loadHttp(load);
    const answer = await requestDaemon(http, what === "ready" ? "/readyz" : "/healthz", context.stop);
    const health = answer === undefined ? undefined : parseHealth(answer.body);
    if (health !== undefined) say(context, JSON.stringify(health));
    else if (http === undefined)
      say(context, "The health of the daemon cannot be checked: http.listen is false.");
    else
      say(
        context,
        answer === undefined ? NO_DAEMON : "Another program answers at http.listen, not an Inlet daemon.",
      );
    return health !== undefined && answer?.status === 200 ? "fine" : "failed";
  } catch (error) {
    say(context, (await explainPermission(asFault(error))).message);
    return "failed";
  }
}

async function readStatus(settings: Settings, signal: AbortSignal): Promise<Reading> {
  const { http, inbox } = settings;
  const answer = await requestDaemon(http, "/api/status", signal);
  const status = answer?.status === 200 ? parseStatus(answer.body) : undefined;
  if (status?.daemon.inbox === inbox) return { status, instead: undefined };
  return { status: await peekStatus(settings), instead: describeInstead(http !== undefined, answer, status) };
}

function describeInstead(isAsked: boolean, answer: unknown, status: Status | undefined): string {
  if (!isAsked) return "The daemon cannot be reached: http.listen is false.";
  if (answer === undefined) return NO_DAEMON;
  return status === undefined
    ? "No daemon answers: another program listens at http.listen."
    : `No daemon of this inbox answers: the one at http.listen serves ${status.daemon.inbox}.`;
}

export function outcomeOf({ live, troubles, totals }: Pick<Status, "live" | "troubles" | "totals">): Outcome {
  if (!live || troubles.some((trouble) => outcomeOfFault(trouble) === "unreachable")) return "unreachable";
  return totals.attention > 0 || troubles.length > 0 ? "attention" : "fine";
}

/** The status without a daemon, from the work folder. */
export async function peekStatus(settings: Settings): Promise<Status> {
  const { work, mailboxes } = settings;
  const board = new Board(describeDaemon(settings), mailboxes, systemClock, keptIn(work));
  const ledger = peekLedger(settings);
  const open = await Array.fromAsync(ledger.open());
  board.learn([...open, ...(await Array.fromAsync(ledger.quarantined()))]);
  board.recall(await readDeliveries(work), await readGone(settings, systemClock.now()));
  const readEnd = (name: string, round: number) => ledger.readEnd(name, round);
  const summary = await peekHandoffs(work, (delivery) => handoffOf(settings, delivery), readEnd);
  board.listener({ type: "outbox-scanned", summary });
  const status = board.read();
  // The board describes this process, which is not a daemon.
  return { ...status, live: false, daemon: { ...status.daemon, pid: undefined, startedAt: undefined } };
}

const TIMEOUT_MS = 5_000;
/** Enough for many thousands of mailboxes. */
const MAX_BYTES = 32 * 1024 ** 2;

interface DaemonAnswer {
  readonly status: number;
  readonly body: string;
}

/**
 * `undefined` without a complete answer in time. The answer is not trusted: any program may listen there. Throws
 * `DAEMON_UNREACHABLE` if this user may not use the socket.
 */
export async function requestDaemon(
  http: HttpSettings | undefined,
  path: string,
  signal: AbortSignal,
): Promise<DaemonAnswer | undefined> {
  if (http === undefined) return undefined;
  const { listen } = http;
  const place =
    "path" in listen
      ? { socketPath: listen.path }
      : { host: connectableHost(listen.host), port: listen.port };
  const { promise, resolve, reject } = Promise.withResolvers<DaemonAnswer>();
  const within = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  // A host name that every daemon accepts.
  const headers = { host: "localhost" };
  request({ ...place, path, headers, agent: false, signal: within }, (response) => {
    readText(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
  })
    .once("error", reject)
    .end();
  return promise.catch((cause: unknown) => {
    const fault = new Fault("DAEMON_UNREACHABLE", { cause });
    if (isPermissionFault(fault)) throw fault;
    return undefined;
  });
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += (chunk as Buffer).length;
    // Leaving the loop closes the connection.
    if (bytes > MAX_BYTES) throw new Error("the answer is too large");
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString();
}

/** A daemon that listens on every address is reached on the loopback one. */
function connectableHost(host: string): string {
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
  overdueSince: v.optional(Time),
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
  overdue: v.array(v.looseObject({ kind: v.string(), since: Time })),
  needsRestart: v.array(v.string()),
  mailboxes: v.array(MailboxShape),
  counts: v.record(v.string(), v.number()),
  totals: v.object({ attention: v.number(), downloading: v.number(), queued: v.number() }),
  waitingSince: v.optional(Time),
  causes: v.array(
    v.looseObject({ state: State, reason: Text, count: v.number(), firstExpires: v.optional(Time) }),
  ),
  attention: v.array(TransferShape),
  downloading: v.array(TransferShape),
  queued: v.array(TransferShape),
  recent: v.array(
    v.looseObject({
      mailbox: v.string(),
      trackingId: v.string(),
      sender: v.string(),
      folder: v.string(),
      inbox: Text,
      at: Time,
      tookSeconds: v.optional(v.number()),
    }),
  ),
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
