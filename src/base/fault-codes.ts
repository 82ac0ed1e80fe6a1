/** Every way in which work can fail: its code, the verdict on it, and what it says to an operator. */

/**
 * What to do about a failure.
 * - `retry`: it may pass by itself; try again soon, with back-off.
 * - `wait`: something outside has to change first (a person, a lock, a limit); trying again soon does harm or nothing.
 * - `quarantine`: what arrived cannot be vouched for; keep it apart and report it.
 * - `fatal`: trying again cannot help this request; somebody has to change the request or the configuration.
 */
export type Verdict = "retry" | "wait" | "quarantine" | "fatal";

interface FaultMeaning {
  readonly verdict: Verdict;
  /** What happened, as the beginning of a sentence: details may follow in parentheses. */
  readonly happened: string;
  /** What the operator can do. */
  readonly advice: string;
}

/** Failures between us and the service, whichever transfer is asked for. */
export const SERVICE_FAULTS = {
  SERVICE_UNREACHABLE: {
    verdict: "retry",
    happened: "The service could not be reached",
    advice:
      "Check the base URL, the network, name resolution and the proxy; the daemon tries again by itself.",
  },
  SERVICE_TIMEOUT: {
    verdict: "retry",
    happened: "The service did not answer in time",
    advice: "The daemon tries again by itself; if it persists, look at the network or raise service.timeout.",
  },
  CONNECTION_LOST: {
    verdict: "retry",
    happened: "The connection broke before the answer was complete",
    advice:
      "The daemon tries again by itself; if it persists, look for a proxy or firewall that cuts long transfers.",
  },
  TLS_REFUSED: {
    verdict: "wait",
    happened: "No trusted connection to the service could be made",
    advice:
      "Check the base URL and the service's certificate; for a private certificate authority set service.ca.",
  },
  PROXY_REFUSED: {
    verdict: "wait",
    happened: "The proxy refused the connection",
    advice: "Check service.proxy (or HTTPS_PROXY and NO_PROXY) and the proxy's own rules.",
  },
  REDIRECT_REFUSED: {
    verdict: "wait",
    happened: "The service sent the request elsewhere, and secrets go only to the configured origin",
    advice: "If the service has moved, set service.baseUrl to its new address; otherwise ask who runs it.",
  },
  RATE_LIMITED: {
    verdict: "wait",
    happened: "The service asks for fewer requests",
    advice: "Wait for the time the service names, as the daemon does; poll less often if it persists.",
  },
  SERVER_FAULT: {
    verdict: "retry",
    happened: "The service failed",
    advice: "The daemon tries again by itself; if it persists, tell whoever runs the service.",
  },
  NOT_SUPPORTED: {
    verdict: "fatal",
    happened: "The service does not support this operation",
    advice: "Ask whoever runs the service whether it is switched off or too old.",
  },
  BAD_ANSWER: {
    verdict: "retry",
    happened: "The answer is not what the interface promises",
    advice:
      "A proxy or login page may stand in between; check that service.baseUrl leads to the service itself.",
  },
  ANSWER_TOO_LARGE: {
    verdict: "retry",
    happened: "The answer is larger than any honest one",
    advice: "Check that service.baseUrl leads to the service itself, and tell whoever runs it.",
  },
  POLL_TOO_LONG: {
    verdict: "retry",
    happened: "The poll took too long",
    advice:
      "Inlet downloads the transfers that were listed so far and polls again. Ask the service's operator why its lists are slow.",
  },
  LIST_ENDLESS: {
    verdict: "retry",
    happened: "The list of transfers does not end",
    advice: "Tell whoever runs the service.",
  },
  TOO_MANY_TRANSFERS: {
    verdict: "retry",
    happened: "The service lists more new transfers than Inlet takes up at once",
    advice:
      "If so many are expected, do nothing: later polls take up the rest. Otherwise tell the service's operator.",
  },
  BAD_REQUEST: {
    verdict: "fatal",
    happened: "The service did not understand the request",
    advice: "Check the ids and options given; if they are right, please report this as a defect of Inlet.",
  },
  TOKEN_REFUSED: {
    verdict: "wait",
    happened: "The service does not accept the verification of this address",
    advice:
      "Ask the service's administrator to register the client id for it, or verify it by a mailed code.",
  },
  NOT_LICENSED: {
    verdict: "wait",
    happened: "The service's REST interface is not licensed",
    advice: "Ask the service's administrator to enable it.",
  },
  POLICY_REFUSED: {
    verdict: "wait",
    happened: "The service's policy refuses the request",
    advice: "Ask the service's administrator which rule applies to this address.",
  },
  ACCESS_REFUSED: {
    verdict: "wait",
    happened: "The service or a proxy before it refused access",
    advice: "Check the base URL and the proxy, and ask whoever runs the service.",
  },
  API_VERSION: {
    verdict: "fatal",
    happened: "The service does not speak the version of the interface that Inlet needs",
    advice: "Inlet needs version 1.12 or newer of major version 1: ask for an update of the service.",
  },
  NO_SUCH_ENDPOINT: {
    verdict: "fatal",
    happened: "The service has nothing at this address",
    advice: "Check service.baseUrl: it is what stands before /api. An older service may lack this operation.",
  },
} as const satisfies Record<string, FaultMeaning>;

/** Failures of one transfer: its password, its content, its size. */
const TRANSFER_FAULTS = {
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

/** Failures on our own side: the disk, the configuration, the queue. */
const LOCAL_FAULTS = {
  TARGET_EXISTS: {
    verdict: "fatal",
    happened: "There already is something else of that name, and nothing is ever overwritten",
    advice: "Choose another name or folder with --output, or move the old one away.",
  },
  NAME_UNUSABLE: {
    verdict: "fatal",
    happened: "The sender's file name could do harm here",
    advice: "Download this file alone, by its id, and give it a name with --output.",
  },
  DISK_FULL: {
    verdict: "wait",
    happened: "There is no space left on the disk",
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
    advice: "Check that it is there, that its disk is healthy, and that this user may read it.",
  },
  WATCH_REFUSED: {
    verdict: "retry",
    happened: "The system cannot watch a folder for changes",
    advice:
      "The folder is checked every few seconds instead. At ENOSPC raise fs.inotify.max_user_watches, at EMFILE fs.inotify.max_user_instances (sysctl), then restart Inlet.",
  },
  CONFIG_INVALID: {
    verdict: "fatal",
    happened: "Something given is not valid",
    advice: "Nothing was changed.",
  },
  SECRET_UNREADABLE: {
    verdict: "wait",
    happened: "A secret cannot be read",
    advice: "Check that its file, variable, credential or command is there and that Inlet may read it.",
  },
  RECORD_UNREADABLE: {
    verdict: "wait",
    happened: "A record of the ledger is damaged, or was written by another version of Inlet",
    advice:
      "Do not delete it: it says whether the transfer was delivered. Restore it from a backup, or update Inlet.",
  },
  INBOX_HELD: {
    verdict: "fatal",
    happened: "Another Inlet holds this inbox",
    advice: "Stop the other one, or give this one an inbox of its own.",
  },
  WORK_NOT_OURS: {
    verdict: "fatal",
    happened: "The work folder is not as Inlet has made it",
    advice:
      "Nothing was changed. Run Inlet as the user to whom the folder belongs. Where that is right already, somebody else has put it there: look at it, and at who may write the folder above it.",
  },
  WORK_LOST: {
    verdict: "fatal",
    happened: "The work folder of this inbox is gone",
    advice:
      "Nothing was changed: without its ledger, all that the service still lists would be delivered again. Mount its disk, move it back, or restore it from a backup.",
  },
  WORK_RESTORED: {
    verdict: "fatal",
    happened: "The ledger in the work folder is older than this machine remembers",
    advice:
      "Nothing was changed: everything since would be delivered again. Restore a newer copy of the work folder, or remove the file that is named here to begin with the older one.",
  },
  WORK_OLDER: {
    verdict: "fatal",
    happened: "An older Inlet has used this inbox, and this one does not read what it wrote",
    advice: "Nothing was changed. Let the older one deliver what is open, then move the work folder away.",
  },
  LINKS_MISSING: {
    verdict: "fatal",
    happened: "The work folder's file system has no hard links, so that only one process may use it",
    advice: "Set queue: embedded, or put inbox and work on another file system.",
  },
  WORK_NEWER: {
    verdict: "fatal",
    happened: "A newer Inlet has used this inbox",
    advice: "Nothing was changed. Update this one: it would not understand what the newer one has written.",
  },
  QUEUE_UNREACHABLE: {
    verdict: "retry",
    happened: "The queue's Redis could not be reached",
    advice: "Check queue and the redis settings, and that Redis runs; the daemon waits for it.",
  },
  QUEUE_UNSUITABLE: {
    verdict: "fatal",
    happened: "This Redis cannot hold the queue",
    advice: "Use Redis 6.2 or newer, or Valkey, with the policy noeviction.",
  },
  NO_SUCH_TRANSFER: {
    verdict: "fatal",
    happened: "No such transfer is known here",
    advice: "inlet status and inlet history show those that are; each is named by its tracking-id.",
  },
  ORDER_IMPOSSIBLE: {
    verdict: "fatal",
    happened: "That cannot be done with this transfer now",
    advice: "Look at it with inlet status first. Nothing was changed.",
  },
  COMMAND_FAILED: {
    verdict: "retry",
    happened: "The command after the delivery failed",
    advice:
      "The folder stays delivered. See in the log what it printed; inlet retry runs it again at once, also after it was given up.",
  },
  WEBHOOK_FAILED: {
    verdict: "retry",
    happened: "The webhook did not accept the news of the delivery",
    advice:
      "The folder stays delivered. Look at the receiver; inlet retry sends it again at once, also after it was given up.",
  },
  ROUND_LOST: {
    verdict: "retry",
    happened: "Another worker or an operator has ended this transfer",
    advice: "Nothing is to be done.",
  },
  TARGET_UNSAFE: {
    verdict: "wait",
    happened: "A delivery would be led out of its place in the inbox",
    advice:
      "Nothing was delivered. Replace the link or file by a folder: consumers may not put links where Inlet delivers.",
  },
  UNEXPECTED: {
    verdict: "retry",
    happened: "Something happened that nobody foresaw",
    advice: "The daemon tries again by itself; please report it, with the log around it.",
  },
  STOPPED: {
    verdict: "retry",
    happened: "It was stopped before it was done",
    advice: "Start it again.",
  },
} as const satisfies Record<string, FaultMeaning>;

export const FAULT_CODES = { ...SERVICE_FAULTS, ...TRANSFER_FAULTS, ...LOCAL_FAULTS } as const;

export type FaultCode = keyof typeof FAULT_CODES;
