/** Every fault: its code, its verdict, and its message and advice to the operator. */
import { FOLDER_FAULTS } from "./folder-faults.ts";
import { HANDOFF_FAULTS } from "./handoff-faults.ts";
import { NOTIFY_FAULTS } from "./notify-faults.ts";
import { QUEUE_FAULTS } from "./queue-faults.ts";

/**
 * What Inlet does about a fault.
 * - `retry`: it may pass by itself; try again soon, with back-off.
 * - `wait`: something outside has to change first (a person, a lock, a limit); trying again soon is useless or harmful.
 * - `quarantine`: Inlet cannot vouch for the content; keep it apart and report it.
 * - `fatal`: trying again cannot help; the request or the configuration has to change.
 */
export type Verdict = "retry" | "wait" | "quarantine" | "fatal";

interface FaultMeaning {
  readonly verdict: Verdict;
  /** A sentence without its full stop: details may follow after a colon. */
  readonly happened: string;
  /** What the operator can do. */
  readonly advice: string;
}

/** Failures between us and the service that concern no single transfer. */
export const SERVICE_FAULTS = {
  SERVICE_UNREACHABLE: {
    verdict: "retry",
    happened: "The service could not be reached",
    advice: "Check the base URL, the network, name resolution and the proxy; the daemon retries by itself.",
  },
  SERVICE_TIMEOUT: {
    verdict: "retry",
    happened: "The service did not answer in time",
    advice: "The daemon retries by itself; if it persists, check the network or raise service.timeout.",
  },
  CONNECTION_LOST: {
    verdict: "retry",
    happened: "The connection was lost before the answer was complete",
    advice:
      "The daemon retries by itself; if it persists, look for a proxy or firewall that cuts long downloads.",
  },
  TLS_REFUSED: {
    verdict: "wait",
    happened: "No trusted TLS connection to the service could be established",
    advice:
      "Check the base URL and the service's certificate; for a private certificate authority set service.ca.",
  },
  PROXY_REFUSED: {
    verdict: "wait",
    happened: "The proxy refused the connection",
    advice: "Check service.proxy (or HTTPS_PROXY and NO_PROXY) and the proxy's rules.",
  },
  REDIRECT_REFUSED: {
    verdict: "wait",
    happened: "The service redirected to another address, and Inlet sends secrets only to the configured one",
    advice:
      "If the service has moved, set service.baseUrl to its new address; otherwise ask its administrator.",
  },
  RATE_LIMITED: {
    verdict: "wait",
    happened: "The service limits the rate of requests",
    advice: "The daemon waits as long as the service asks; if it persists, poll less often.",
  },
  SERVER_FAULT: {
    verdict: "retry",
    happened: "The service failed",
    advice: "The daemon retries by itself; if it persists, contact the service's administrator.",
  },
  NOT_SUPPORTED: {
    verdict: "fatal",
    happened: "The service does not support this operation",
    advice:
      "Ask the service's administrator whether the operation is disabled, or the service is too old for it.",
  },
  BAD_ANSWER: {
    verdict: "retry",
    happened: "The answer does not follow the interface",
    advice:
      "A proxy or login page may have answered; check that service.baseUrl leads to the service itself.",
  },
  ANSWER_TOO_LARGE: {
    verdict: "retry",
    happened: "The answer is implausibly large",
    advice:
      "Check that service.baseUrl leads to the service itself, and contact the service's administrator.",
  },
  POLL_TOO_LONG: {
    verdict: "retry",
    happened: "The poll took too long",
    advice:
      "Inlet downloads the transfers listed so far and polls again. Ask the service's administrator why its lists are slow.",
  },
  LIST_ENDLESS: {
    verdict: "retry",
    happened: "The list of transfers does not end",
    advice: "Contact the service's administrator.",
  },
  TOO_MANY_TRANSFERS: {
    verdict: "retry",
    happened: "The service lists more new transfers than Inlet takes up at once",
    advice:
      "If you expect that many, do nothing: later polls take up the rest. Otherwise contact the service's administrator.",
  },
  BAD_REQUEST: {
    verdict: "fatal",
    happened: "The service did not understand the request",
    advice: "Check the ids and options; if they are right, please report this as a defect of Inlet.",
  },
  TOKEN_REFUSED: {
    verdict: "wait",
    happened: "The service does not accept the verification of this address",
    advice:
      "Ask the service's administrator to register the client id for this address, or verify the address with inlet verify-address.",
  },
  NOT_LICENSED: {
    verdict: "wait",
    happened: "The service's REST interface is not licensed",
    advice: "Ask the service's administrator to enable the interface.",
  },
  POLICY_REFUSED: {
    verdict: "wait",
    happened: "The service's policy refuses the request",
    advice: "Ask the service's administrator which rule applies to this address.",
  },
  ACCESS_REFUSED: {
    verdict: "wait",
    happened: "The service, or a proxy in front of it, refused access",
    advice: "Check the base URL and the proxy, and ask the service's administrator.",
  },
  API_VERSION: {
    verdict: "fatal",
    happened: "The service does not offer the interface version that Inlet needs",
    advice: "Inlet needs 1.12 or a newer 1.x: ask the service's administrator for an update.",
  },
  NO_SUCH_ENDPOINT: {
    verdict: "fatal",
    happened: "The service does not have this endpoint",
    advice:
      "Check service.baseUrl, the part of the address before /api. An older service may lack this operation.",
  },
} as const satisfies Record<string, FaultMeaning>;

/** Failures of one transfer: its password, its content, its size. */
const TRANSFER_FAULTS = {
  NOT_FOUND: {
    verdict: "fatal",
    happened: "The service did not find the transfer or file",
    advice: "Check the id. A transfer may have expired, or not be ready yet.",
  },
  PASSWORD_REFUSED: {
    verdict: "wait",
    happened: "The service refused the transfer password",
    advice:
      "Ask the sender for the right password. Do not guess: too many wrong passwords lock or destroy the transfer.",
  },
  PASSWORD_UNUSABLE: {
    verdict: "wait",
    happened: "The password is empty, or not one line of text",
    advice: "Supply the password again, as one line of UTF-8 text.",
  },
  PASSWORDS_HELD: {
    verdict: "retry",
    happened: "No password is sent now, because the verdict on the last one is unknown",
    advice:
      "Inlet continues by itself when the service answers again. Each attempt with an unknown verdict counts as spent.",
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
    advice:
      "Wait: the service unlocks the transfer after some time. Requests before that only prolong the lock.",
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
    happened:
      "The service gives no checksum for the content, and this mailbox delivers only verified transfers",
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
    advice: "Do not use the ZIP. Download it again, or download the files one by one.",
  },
  RANGE_REFUSED: {
    verdict: "retry",
    happened: "The service did not resume the download at the requested position",
    advice: "Inlet downloads the file from the start.",
  },
} as const satisfies Record<string, FaultMeaning>;

/** Failures on our own side: the disk, the configuration, the queue. */
const LOCAL_FAULTS = {
  TARGET_EXISTS: {
    verdict: "fatal",
    happened: "The target exists already, and Inlet never overwrites a file",
    advice: "Choose another name or folder with --output, or move the existing file away.",
  },
  NAME_UNUSABLE: {
    verdict: "fatal",
    happened: "The sender's file name is not safe to use here",
    advice: "Download this file by its id, and name it with --output.",
  },
  DISK_FULL: {
    verdict: "wait",
    happened: "No space is left on the disk",
    advice: "Free some space, or choose another folder.",
  },
  DISK_REFUSED: {
    verdict: "wait",
    happened: "The file could not be written",
    advice: "Check that the folder exists, that its disk is healthy, and that Inlet may write there.",
  },
  DISK_UNREADABLE: {
    verdict: "wait",
    happened: "The file or folder could not be read",
    advice: "Check that it exists, that its disk is healthy, and that this user may read it.",
  },
  PERMISSION_DENIED: {
    verdict: "fatal",
    happened: "This user may not read or act here",
    advice:
      "Run the command with sudo, or as the owner that the message names. Or let the user work through the daemon: set http.listen to a Unix socket, and add the user to the socket's group. To act, it also needs http.actions: true.",
  },
  WATCH_REFUSED: {
    verdict: "retry",
    happened: "The system cannot watch this folder for changes",
    advice:
      "Inlet checks the folder every few seconds instead. If the message says ENOSPC, raise fs.inotify.max_user_watches with sysctl; if it says EMFILE, raise fs.inotify.max_user_instances. Then restart Inlet.",
  },
  CONFIG_INVALID: {
    verdict: "fatal",
    happened: "The configuration or the command line is not valid",
    advice: "Nothing was changed. Correct what the message names.",
  },
  SECRET_UNREADABLE: {
    verdict: "wait",
    happened: "A secret cannot be read",
    advice: "Check that its file, variable, credential or command exists and that Inlet may read it.",
  },
  RECORD_UNREADABLE: {
    verdict: "wait",
    happened: "A ledger record is damaged, or was written by another version of Inlet",
    advice:
      "Do not delete the record: it says whether the transfer was delivered. Restore it from a backup, or update Inlet.",
  },
  INBOX_HELD: {
    verdict: "fatal",
    happened: "Another Inlet holds the lock on this inbox",
    advice: "Stop the other process, or configure another inbox for this process.",
  },
  WORK_NOT_OURS: {
    verdict: "fatal",
    happened: "The work folder is not safe to use",
    advice:
      "Nothing was changed. Run Inlet as the user who owns the folder. If Inlet already runs as that user, another user has interfered: inspect the work folder, and check who may write to the folder above it.",
  },
  WORK_LOST: {
    verdict: "fatal",
    happened: "The work folder of this inbox is missing",
    advice:
      "Nothing was changed: without the ledger in that folder, Inlet would deliver every listed transfer again. Mount the disk of the work folder, move the folder back, or restore it from a backup.",
  },
  WORK_RESTORED: {
    verdict: "fatal",
    happened: "The ledger in the work folder is an older copy",
    advice:
      "Nothing was changed: Inlet would deliver again every transfer that the older copy does not record. Restore a newer copy of the work folder. Or, to accept the older copy, remove the file that the message names.",
  },
  WORK_OLDER: {
    verdict: "fatal",
    happened: "An older, incompatible version of Inlet wrote this work folder",
    advice:
      "Nothing was changed. Let the older version deliver its open transfers. Then set since: now for every mailbox, so that transfers that are still listed are not delivered again, and move the work folder away.",
  },
  LINKS_MISSING: {
    verdict: "fatal",
    happened: "The work folder's file system has no hard links, so only one process may use it",
    advice: "Set queue: embedded, or put inbox and work on another file system.",
  },
  WORK_NEWER: {
    verdict: "fatal",
    happened: "A newer version of Inlet wrote this work folder",
    advice: "Nothing was changed. Update this installation of Inlet.",
  },
  DAEMON_UNREACHABLE: {
    verdict: "retry",
    happened: "The daemon does not answer as it should",
    advice: "Check that it runs, with the same version as this command.",
  },
  NO_SUCH_TRANSFER: {
    verdict: "fatal",
    happened: "No transfer with this tracking-id is known here",
    advice: "List the known transfers with inlet list.",
  },
  ORDER_IMPOSSIBLE: {
    verdict: "fatal",
    happened: "This cannot be done",
    advice: "Nothing was changed; inlet show lists the commands that apply to a transfer.",
  },
  ROUND_LOST: {
    verdict: "retry",
    happened: "Another worker or an operator has already ended this round",
    advice: "Nothing needs to be done.",
  },
  TARGET_UNSAFE: {
    verdict: "wait",
    happened: "A link or file is in the way of a delivery",
    advice:
      "Nothing was delivered. Replace the link or file with a folder: consumers must not put links where Inlet delivers.",
  },
  TARGET_TAKEN: {
    verdict: "wait",
    happened: "A file or folder that is not part of the delivery has the name that the delivery needs",
    advice: "Move it away, because Inlet does not replace it. The delivery then continues by itself.",
  },
  UNEXPECTED: {
    verdict: "retry",
    happened: "Unexpected error",
    advice: "The daemon retries by itself; please report it, with the log lines around it.",
  },
  STOPPED: {
    verdict: "retry",
    happened: "Stopped before it was finished",
    advice: "Run it again.",
  },
} as const satisfies Record<string, FaultMeaning>;

export const FAULT_CODES = {
  ...SERVICE_FAULTS,
  ...TRANSFER_FAULTS,
  ...LOCAL_FAULTS,
  ...FOLDER_FAULTS,
  ...QUEUE_FAULTS,
  ...HANDOFF_FAULTS,
  ...NOTIFY_FAULTS,
} as const satisfies Record<string, FaultMeaning>;

export type FaultCode = keyof typeof FAULT_CODES;
