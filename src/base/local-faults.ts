/** Failures on our own side: the disk, the configuration, the queue. */
import type { FaultMeaning } from "./verdict.ts";

export const LOCAL_FAULTS = {
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
