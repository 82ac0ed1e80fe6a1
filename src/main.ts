/** The program: arguments → command → exit code. The only place that ends the process. */
import { CommanderError } from "commander";
import type { FaultCode } from "./base/fault-codes.ts";
import { asFault, describeFault, type Fault } from "./base/faults.ts";
import { escapeJson } from "./base/phrases.ts";
import type { Context, Outcome } from "./cli/context.ts";
import { explainPermission } from "./cli/permission.ts";
import { printableLines } from "./cli/printing.ts";
import { createProgram } from "./cli/program.ts";

const EXIT = { fine: 0, failed: 1, usage: 2, attention: 3, unreachable: 4, interrupted: 130 } as const;

const EXIT_OF_FAULT: Readonly<Record<FaultCode, keyof typeof EXIT>> = {
  SERVICE_UNREACHABLE: "unreachable",
  SERVICE_TIMEOUT: "unreachable",
  CONNECTION_LOST: "unreachable",
  TLS_REFUSED: "unreachable",
  PROXY_REFUSED: "unreachable",
  REDIRECT_REFUSED: "unreachable",
  RATE_LIMITED: "unreachable",
  SERVER_FAULT: "unreachable",
  NOT_SUPPORTED: "failed",
  BAD_ANSWER: "failed",
  ANSWER_TOO_LARGE: "failed",
  POLL_TOO_LONG: "failed",
  LIST_ENDLESS: "failed",
  TOO_MANY_TRANSFERS: "failed",
  BAD_REQUEST: "failed",
  TOKEN_REFUSED: "attention",
  NOT_LICENSED: "failed",
  POLICY_REFUSED: "failed",
  ACCESS_REFUSED: "failed",
  API_VERSION: "failed",
  NO_SUCH_ENDPOINT: "failed",
  NOT_FOUND: "failed",
  PASSWORD_REFUSED: "attention",
  PASSWORD_UNUSABLE: "attention",
  PASSWORDS_HELD: "unreachable",
  GAVE_WAY: "unreachable",
  ONE_AT_A_TIME: "unreachable",
  TRANSFER_LOCKED: "attention",
  TRANSFER_DELETED: "attention",
  MESSAGE_REFUSED: "attention",
  CHECKSUMS_UNREADABLE: "attention",
  CHECKSUM_MISMATCH: "attention",
  SIZE_MISMATCH: "attention",
  ALGORITHM_UNKNOWN: "attention",
  UNVERIFIABLE: "attention",
  CHECKSUMS_INCOMPLETE: "attention",
  CHECK_REFUSED: "attention",
  CHECK_CHANGED: "attention",
  CHECK_FAILED: "attention",
  LIMIT_EXCEEDED: "attention",
  ARCHIVE_WRONG: "attention",
  RANGE_REFUSED: "failed",
  TARGET_EXISTS: "usage",
  NAME_UNUSABLE: "usage",
  DISK_FULL: "failed",
  DISK_REFUSED: "failed",
  DISK_UNREADABLE: "failed",
  PERMISSION_DENIED: "usage",
  WATCH_REFUSED: "failed",
  CONFIG_INVALID: "usage",
  SECRET_UNREADABLE: "usage",
  RECORD_UNREADABLE: "attention",
  INBOX_HELD: "usage",
  INBOX_MISSING: "attention",
  INBOX_APART: "usage",
  PROC_MISSING: "usage",
  GROUP_UNKNOWN: "attention",
  GROUP_REFUSED: "usage",
  WORK_NOT_OURS: "usage",
  WORK_LOST: "attention",
  WORK_RESTORED: "attention",
  WORK_OLDER: "usage",
  LINKS_MISSING: "usage",
  WORK_NEWER: "usage",
  DAEMON_UNREACHABLE: "unreachable",
  QUEUE_UNREACHABLE: "unreachable",
  QUEUE_REFUSED: "unreachable",
  QUEUE_UNSUITABLE: "usage",
  NO_SUCH_TRANSFER: "usage",
  ORDER_IMPOSSIBLE: "usage",
  COMMAND_FAILED: "attention",
  WEBHOOK_FAILED: "attention",
  MAIL_UNREACHABLE: "unreachable",
  MAIL_TLS_REFUSED: "usage",
  MAIL_LOGIN_REFUSED: "usage",
  MAIL_DEFERRED: "unreachable",
  MAIL_REFUSED: "usage",
  MAIL_RECIPIENTS_REFUSED: "usage",
  NOTIFY_WEBHOOK_FAILED: "unreachable",
  ROUND_LOST: "failed",
  TARGET_TAKEN: "attention",
  TARGET_UNSAFE: "attention",
  UNEXPECTED: "failed",
  STOPPED: "interrupted",
};

const LINGER = { checkMs: 500, maxMs: 5_000 } as const;

// A process that ends before its work is done has failed.
process.exitCode = EXIT.failed;

const stop = new AbortController();
let reload: (() => void) | undefined;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => {
    if (signal === "SIGHUP" && reload !== undefined && !stop.signal.aborted) return reload();
    if (stop.signal.aborted) process.exit(EXIT.interrupted);
    stop.abort(new Error(`${signal} received`));
  });
}
const onReload: Context["onReload"] = (listener) => {
  reload = listener;
};

// A reader that closes the pipe early, as `head` does, is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE")
    process.stderr.write(`inlet: the output could not be written (${error.code}).\n`);
  process.exit(error.code === "EPIPE" ? EXIT.fine : EXIT.failed);
});
process.stderr.on("error", () => {});

const { env, stdin, stdout, stderr, argv } = process;
let report = (fault: Fault) => printFault(fault, argv.includes("--json"));
const onFault: Context["onFault"] = (listener) => {
  report = listener;
};
process.on("uncaughtException", (error) => {
  report(asFault(error));
  process.exit(EXIT.failed);
});
const context = { env, stdin, stdout, stderr, stop: stop.signal, onReload, onFault };
process.exitCode = EXIT[await run(context, argv)];

// Exits once all output is written, even if a library left a handle open. After a signal, it waits only a few seconds.
let lingeredMs = 0;
setInterval(() => {
  lingeredMs += LINGER.checkMs;
  const isWritten = stdout.writableLength === 0 && stderr.writableLength === 0;
  if (isWritten || (stop.signal.aborted && lingeredMs >= LINGER.maxMs)) process.exit();
}, LINGER.checkMs).unref();

async function run(context: Context, argv: readonly string[]): Promise<keyof typeof EXIT> {
  let outcome: Outcome = "fine";
  try {
    await createProgram(async (work) => {
      outcome = await work(context);
    }).parseAsync(argv);
    return outcome;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? "fine" : "usage";
    const fault = await explainPermission(asFault(error));
    report(fault);
    return EXIT_OF_FAULT[fault.code];
  }
}

function printFault(fault: Fault, asJson: boolean): void {
  const sentence = asJson ? faultAsJson(fault) : `inlet: ${printableLines(describeFault(fault))}`;
  stderr.write(`${sentence}\n`);
  if (fault.code === "UNEXPECTED" && fault.cause instanceof Error) {
    stderr.write(`${printableLines(fault.cause.stack ?? "")}\n`);
  }
}

function faultAsJson({ code, verdict, message, advice, retryAfterMs }: Fault): string {
  return escapeJson(JSON.stringify({ error: { code, verdict, message, advice, retryAfterMs } }));
}
