/** Verifies what was fetched: a transfer that may be incomplete or wrong goes to the quarantine. */
import { Fault } from "../base/faults.ts";
import { bytesOf, type Contents } from "../model/manifest.ts";
import type { FetchedContents } from "./fetch-content.ts";
import type { OpenedTransfer } from "./open.ts";
import type { Run } from "./run.ts";
import { goOn, type Step } from "./step.ts";

/** Each file was compared with its checksums while it was fetched. An operator vouches for a released transfer. */
export function verifyContents(
  run: Run,
  transfer: OpenedTransfer,
  { contents, doubt, message }: FetchedContents,
): Step<Contents> {
  const { hasMessage, released } = run.record;
  const withheld = message.kind === "refused" && hasMessage === true ? message.fault : undefined;
  const unproven = doubtOf(contents, transfer.totalBytes, run.source.mailbox.verify);
  const fault = transfer.doubt ?? doubt ?? withheld ?? unproven;
  if (fault !== undefined && !released) return { kind: "quarantine", fault };
  if (message.kind === "refused") {
    run.tools.emit({ type: "message-refused", record: run.record, fault: message.fault });
  }
  return goOn(contents);
}

/** Why the contents may be incomplete or wrong although each file is as listed. */
function doubtOf(
  contents: Contents,
  announcedBytes: number,
  verify: "require" | "prefer",
): Fault | undefined {
  const { files, message } = contents;
  const listedBytes = bytesOf(contents);
  // A service may count the confidential message, whose size it announces nowhere.
  const mayBeMore = message !== "none";
  if (mayBeMore ? listedBytes > announcedBytes : listedBytes !== announcedBytes) {
    const detail = `the service announces ${announcedBytes} bytes in total and lists files of ${listedBytes} bytes`;
    return new Fault("SIZE_MISMATCH", { detail });
  }
  if (verify === "prefer") return undefined;
  const unproven = files.find((file) => !file.verified);
  if (unproven !== undefined) {
    return new Fault("UNVERIFIABLE", { detail: JSON.stringify(unproven.originalName) });
  }
  if (files.length > 0 || message === "present") return undefined;
  return new Fault("UNVERIFIABLE", { detail: "it holds neither a file nor a message" });
}
