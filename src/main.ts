/** The program: arguments → command → exit code. The only place that ends the process. */
import { CommanderError } from "commander";
import { asFault, type Fault } from "./base/faults.ts";
import { type Context, EXIT_CODES, type Outcome, outcomeOfFault } from "./cli/command.ts";
import { formatFailure } from "./cli/printing.ts";
import { createProgram } from "./cli/program.ts";
import { explainPermission } from "./host/permission.ts";

const LINGER = { checkMs: 500, maxMs: 5_000 } as const;

// A process that ends before its work is done has failed.
process.exitCode = EXIT_CODES.failed.code;

const stop = new AbortController();
let reload: (() => void) | undefined;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => {
    if (signal === "SIGHUP" && reload !== undefined && !stop.signal.aborted) return reload();
    if (stop.signal.aborted) process.exit(EXIT_CODES.interrupted.code);
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
  process.exit(error.code === "EPIPE" ? EXIT_CODES.fine.code : EXIT_CODES.failed.code);
});
// Without a reader, there is nowhere to report errors.
process.stderr.on("error", () => {});

const { env, stdin, stdout, stderr, argv } = process;
let report = (fault: Fault): void => {
  stderr.write(formatFailure(fault, argv.includes("--json")));
};
const onFault: Context["onFault"] = (listener) => {
  report = listener;
};
process.on("uncaughtException", (error) => {
  report(asFault(error));
  process.exit(EXIT_CODES.failed.code);
});
const context = { env, stdin, stdout, stderr, stop: stop.signal, onReload, onFault };
process.exitCode = EXIT_CODES[await run(context, argv)].code;

// Exits once all output is written, even if a library left a handle open. After a signal, it waits only a few seconds.
let lingeredMs = 0;
setInterval(() => {
  lingeredMs += LINGER.checkMs;
  const isWritten = stdout.writableLength === 0 && stderr.writableLength === 0;
  if (isWritten || (stop.signal.aborted && lingeredMs >= LINGER.maxMs)) process.exit();
}, LINGER.checkMs).unref();

async function run(context: Context, argv: readonly string[]): Promise<Outcome> {
  let outcome: Outcome = "fine";
  try {
    const { program } = createProgram(async (work) => {
      outcome = await work(context);
    });
    await program.parseAsync(argv);
    return outcome;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? "fine" : "usage";
    const fault = await explainPermission(asFault(error));
    report(fault);
    return outcomeOfFault(fault);
  }
}
