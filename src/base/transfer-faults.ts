/** Failures of one transfer: its password, its content, what it would take. */
import type { FaultMeaning } from "./verdict.ts";

export const TRANSFER_FAULTS = {
  NOT_FOUND: {
    verdict: "fatal",
    happened: "The service does not know what was asked for",
    advice: "Check the id. A transfer may have expired, or not be ready yet.",
  },
  PASSWORD_REFUSED: {
    verdict: "wait",
    happened: "The service refused the transfer password",
    advice:
      "Ask the sender for the right one. Do not guess: too many wrong ones destroy or lock the transfer.",
  },
  PASSWORD_UNUSABLE: {
    verdict: "wait",
    happened: "The password cannot be used, because it is empty or not one line of text",
    advice: "Write it again, as one line of UTF-8 text.",
  },
  PASSWORDS_HELD: {
    verdict: "retry",
    happened: "No password is sent now: the service left open whether the last one was right",
    advice: "It goes on by itself when the service answers again; each unclear answer costs an attempt.",
  },
  ONE_AT_A_TIME: {
    verdict: "retry",
    happened: "Another transfer with thousands of files is being downloaded from this service",
    advice: "It goes on by itself, when that one is done.",
  },
  GAVE_WAY: {
    verdict: "retry",
    happened: "It arrived slowly while others waited, and let them pass",
    advice: "It goes on by itself, where it was.",
  },
  TRANSFER_LOCKED: {
    verdict: "wait",
    happened: "The service has locked the transfer after too many wrong passwords",
    advice: "Wait: the service frees it after a time of its own, and asking before only prolongs it.",
  },
  TRANSFER_DELETED: {
    verdict: "fatal",
    happened: "The service has deleted the transfer",
    advice: "Ask the sender to send it again.",
  },
  MESSAGE_REFUSED: {
    verdict: "quarantine",
    happened: "The service does not give the confidential message of this transfer",
    advice: "Ask the sender for the message, then release the transfer to deliver its files without it.",
  },
  CHECKSUMS_UNREADABLE: {
    verdict: "quarantine",
    happened: "The checksums file cannot be understood",
    advice: "Look at it with 'inlet api checksums --raw', and report its form as a defect of Inlet.",
  },
  CHECKSUM_MISMATCH: {
    verdict: "quarantine",
    happened: "The bytes received do not match the sender's checksum",
    advice: "They are not delivered. Try once more; if it stays, ask the sender to send it again.",
  },
  SIZE_MISMATCH: {
    verdict: "quarantine",
    happened: "The number of bytes is not the announced one",
    advice: "They are not delivered. Try once more; if it stays, ask the sender to send it again.",
  },
  ALGORITHM_UNKNOWN: {
    verdict: "quarantine",
    happened: "The checksum's algorithm is not known here",
    advice: "Verify the file by hand, and ask for the algorithm to be supported.",
  },
  UNVERIFIABLE: {
    verdict: "quarantine",
    happened: "The service has no checksum for it, and this mailbox delivers nothing unverified",
    advice: "Look at it and release it, or set verify: prefer for the mailbox.",
  },
  CHECKSUMS_INCOMPLETE: {
    verdict: "quarantine",
    happened: "The checksums file and the list of files do not name the same files",
    advice: "Ask the sender which files belong to the transfer, then release or discard it.",
  },
  LIMIT_EXCEEDED: {
    verdict: "quarantine",
    happened: "The transfer is larger than the configured limits allow",
    advice: "Raise limits.maxTransferSize or limits.maxFiles and retry it, or discard it.",
  },
  ARCHIVE_WRONG: {
    verdict: "quarantine",
    happened: "The ZIP does not hold what the list of files announces",
    advice: "Do not use it. Download it again, or the files one by one.",
  },
  RANGE_REFUSED: {
    verdict: "retry",
    happened: "The service did not continue the download where it was asked to",
    advice: "The download starts again from its beginning.",
  },
} as const satisfies Record<string, FaultMeaning>;
