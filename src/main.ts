/** The program: arguments → command → exit code. The only place that ends the process. */
import { CommanderError } from "commander";
import type { FaultCode } from "./base/fault-codes.ts";
import { describeFault, Fault } from "./base/faults.ts";
import type { Context, Outcome } from "./cli/context.ts";
import { printable } from "./cli/printing.ts";
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
  LIST_ENDLESS: "failed",
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
  TRANSFER_LOCKED: "attention",
  TRANSFER_DELETED: "attention",
  CHECKSUMS_UNREADABLE: "attention",
  CHECKSUM_MISMATCH: "attention",
  SIZE_MISMATCH: "attention",
  ALGORITHM_UNKNOWN: "attention",
  ARCHIVE_WRONG: "attention",
  RANGE_REFUSED: "failed",
  TARGET_EXISTS: "usage",
  DISK_FULL: "failed",
  DISK_REFUSED: "failed",
  CONFIG_INVALID: "usage",
  STOPPED: "interrupted",
};

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    if (stop.signal.aborted) process.exit(EXIT.interrupted);
    stop.abort(new Error(`${signal} received`));
  });
}

// Whoever reads our output may stop early, as `head` does: that is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(EXIT.fine);
  throw error;
});

const { env, stdin, stdout, stderr, argv } = process;
process.exitCode = EXIT[await run({ env, stdin, stdout, stderr, stop: stop.signal }, argv)];

async function run(context: Context, argv: readonly string[]): Promise<keyof typeof EXIT> {
  let outcome: Outcome = "fine";
  try {
    await createProgram(async (work) => {
      outcome = await work(context);
    }).parseAsync(argv);
    return outcome;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? "fine" : "usage";
    if (!(error instanceof Fault)) throw error;
    context.stderr.write(
      argv.includes("--json") ? `${faultAsJson(error)}\n` : `inlet: ${printable(describeFault(error))}\n`,
    );
    return EXIT_OF_FAULT[error.code];
  }
}

function faultAsJson({ code, verdict, message, advice }: Fault): string {
  return JSON.stringify({ error: { code, verdict, message, advice } });
}
