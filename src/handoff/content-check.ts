/**
 * Runs the administrator's check command on a transfer before its delivery. The exit code decides: 0 accepts, 1 refuses,
 * and anything else is no verdict.
 */
import { Semaphore } from "../base/concurrency.ts";
import { Fault } from "../base/faults.ts";
import { machine } from "../base/machine.ts";
import { scrub } from "../base/secret.ts";
import { type Check, FOLDER } from "../model/mailbox.ts";
import { Orphans } from "./orphans.ts";
import type { CheckedTransfer, Checker, HandoffPatience } from "./port.ts";
import { factsOf } from "./steps.ts";

const REFUSED = 1;
/** The longest reason, in characters. */
const MAX_REASON = 200;
/** The program that sets the memory limit, and then executes the check. It is part of util-linux. */
export const LIMITER = "prlimit";

/** A virus scanner may take a gigabyte of memory. */
const MAX_AT_ONCE = 8;

/** Checks at once are limited, and shared fairly between mailboxes. */
export function createChecker(patience: Pick<HandoffPatience, "scanMs" | "killMs">): Checker {
  const orphans = new Orphans(patience, "check");
  const places = new Semaphore(() => MAX_AT_ONCE);
  return {
    async run(check, transfer, signal) {
      await places.take(transfer.mailbox, signal);
      try {
        if (!(await orphans.clear(transfer.id, check.timeoutMs, signal))) {
          signal.throwIfAborted();
          throw new Fault("CHECK_FAILED", { detail: "an earlier run of it does not end" });
        }
        const { folder, manifest } = transfer;
        const program = {
          argv: argvOf(check, folder),
          env: { ...check.env, ...factsOf("check", transfer, folder, manifest) },
          timeoutMs: check.timeoutMs,
          endsGroup: true,
        };
        const end = await machine().runProgram(program, patience.killMs, signal);
        signal.throwIfAborted();
        if (end.why === undefined) return;
        const { stdout, stderr } = end.firstLine;
        const line = reasonOf(stdout === "" ? stderr : stdout, transfer);
        const output = scrubbed(end.output, transfer);
        const isVerdict = end.exitCode === REFUSED && !isLimiterFailure(check, end.firstLine);
        if (isVerdict) {
          throw new Fault("CHECK_REFUSED", { detail: line === "" ? "it gave no reason" : line, output });
        }
        throw new Fault("CHECK_FAILED", { detail: line === "" ? end.why : `${end.why}: ${line}`, output });
      } finally {
        places.giveBack(transfer.mailbox);
      }
    },
  };
}

function argvOf({ argv: [program, ...words], memoryBytes }: Check, folder: string): Check["argv"] {
  const args = words.map((word) => word.replaceAll(FOLDER, () => folder));
  if (memoryBytes === undefined) return [program, ...args];
  return [LIMITER, `--as=${memoryBytes}`, "--", program, ...args];
}

/** If the limiter cannot set the limit, it ends with the same exit code as a refusal. */
function isLimiterFailure(
  { memoryBytes }: Check,
  { stdout, stderr }: Record<"stdout" | "stderr", string>,
): boolean {
  return memoryBytes !== undefined && stdout === "" && stderr.startsWith(`${LIMITER}: `);
}

/** Without secrets, and with paths relative to the folder. The text comes from the check, and from senders. */
function scrubbed(text: string, { folder, secrets }: CheckedTransfer): string {
  return scrub(text.replaceAll(`${folder}/`, ""), secrets).toWellFormed();
}

/** One short line. */
function reasonOf(line: string, transfer: CheckedTransfer): string {
  const text = scrubbed(line, transfer).replace(/\s+/g, " ");
  return text.length <= MAX_REASON ? text : `${text.slice(0, MAX_REASON).toWellFormed()}…`;
}
