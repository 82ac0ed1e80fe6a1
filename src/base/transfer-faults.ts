/** Failures of one transfer: its password, its content, its size. */
import type { FaultMeaning } from "./verdict.ts";

export const TRANSFER_FAULTS = {
  NOT_FOUND: {
    verdict: "fatal",
    happened: "The service did not find the transfer or file",
    advice: "Check the id. A transfer may have expired, or not be ready yet.",
  },
  PASSWORD_REFUSED: {
    verdict: "wait",
    happened: "The service refused the transfer password",
    advice:
      "Ask the sender for the right one. Do not guess: too many wrong passwords lock or destroy the transfer.",
  },
  PASSWORD_UNUSABLE: {
    verdict: "wait",
    happened: "The password is empty, or not one line of text",
    advice: "Supply it again, as one line of UTF-8 text.",
  },
  PASSWORDS_HELD: {
    verdict: "retry",
    happened: "No password is sent now, because the verdict on the last one is unknown",
    advice: "Inlet continues by itself when the service answers again; each unclear answer costs an attempt.",
  },
  ONE_AT_A_TIME: {
    verdict: "retry",
    happened: "Another transfer with thousands of files is being downloaded from this service",
    advice: "Inlet continues by itself when that download is done.",
  },
  GAVE_WAY: {
    verdict: "retry",
    happened: "The download was slow, and gave its slot to waiting transfers",
    advice: "Inlet resumes it by itself.",
  },
  TRANSFER_LOCKED: {
    verdict: "wait",
    happened: "The service has locked the transfer after too many wrong passwords",
    advice: "Wait: the service unlocks it after some time, and earlier requests only prolong the lock.",
  },
  TRANSFER_DELETED: {
    verdict: "fatal",
    happened: "The service has deleted the transfer",
    advice: "Ask the sender to send it again.",
  },
  MESSAGE_REFUSED: {
    verdict: "quarantine",
    happened: "The service does not return the confidential message of this transfer",
    advice: "Ask the sender for the message, then release the transfer to deliver its files without it.",
  },
  CHECKSUMS_UNREADABLE: {
    verdict: "quarantine",
    happened: "The checksums file cannot be parsed",
    advice: "Look at it with inlet api checksums --raw, and report its format as a defect of Inlet.",
  },
  CHECKSUM_MISMATCH: {
    verdict: "quarantine",
    happened: "The bytes received do not match the sender's checksum",
    advice:
      "The content was not delivered. Retry once; if it happens again, ask the sender to send the transfer again.",
  },
  SIZE_MISMATCH: {
    verdict: "quarantine",
    happened: "The number of bytes differs from the announced size",
    advice:
      "The content was not delivered. Retry once; if it happens again, ask the sender to send the transfer again.",
  },
  ALGORITHM_UNKNOWN: {
    verdict: "quarantine",
    happened: "The checksum's algorithm is not supported",
    advice: "Verify the file by hand, and ask for support of the algorithm.",
  },
  UNVERIFIABLE: {
    verdict: "quarantine",
    happened: "There is no checksum to verify it by, and this mailbox delivers only verified transfers",
    advice: "Check the content and release the transfer, or set verify: prefer for the mailbox.",
  },
  CHECKSUMS_INCOMPLETE: {
    verdict: "quarantine",
    happened: "The checksums file and the file list name different files",
    advice: "Ask the sender which files belong to the transfer, then release or discard it.",
  },
  LIMIT_EXCEEDED: {
    verdict: "quarantine",
    happened: "The transfer exceeds the configured limits",
    advice: "Raise limits.maxTransferSize or limits.maxFiles and retry it, or discard it.",
  },
  ARCHIVE_WRONG: {
    verdict: "quarantine",
    happened: "The ZIP does not match the file list",
    advice: "Do not use it. Download it again, or download the files one by one.",
  },
  RANGE_REFUSED: {
    verdict: "retry",
    happened: "The service did not resume the download at the requested position",
    advice: "Inlet downloads the file from the start.",
  },
} as const satisfies Record<string, FaultMeaning>;
