/** Failures on our own side: the disk, the configuration, the queue. */
import type { FaultMeaning } from "./verdict.ts";

export const LOCAL_FAULTS = {
  TARGET_EXISTS: {
    verdict: "fatal",
    happened: "The target exists already, and Inlet never overwrites a file",
    advice: "Choose another name or folder with --output, or move the old one away.",
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
  WATCH_REFUSED: {
    verdict: "retry",
    happened: "The system cannot watch this folder for changes",
    advice:
      "Inlet checks the folder every few seconds instead. For ENOSPC raise fs.inotify.max_user_watches, for EMFILE fs.inotify.max_user_instances (sysctl), then restart Inlet.",
  },
  CONFIG_INVALID: {
    verdict: "fatal",
    happened: "The configuration or the command line is not valid",
    advice: "Nothing was changed.",
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
      "Do not delete it: it records whether the transfer was delivered. Restore it from a backup, or update Inlet.",
  },
  INBOX_HELD: {
    verdict: "fatal",
    happened: "Another Inlet holds the lock on this inbox",
    advice: "Stop the other process, or configure another inbox for this one.",
  },
  WORK_NOT_OURS: {
    verdict: "fatal",
    happened: "The work folder is not safe to use",
    advice:
      "Nothing was changed. Run Inlet as the user who owns the folder. If it does already, another user put this there: inspect it, and check who may write to the folder above it.",
  },
  WORK_LOST: {
    verdict: "fatal",
    happened: "The work folder of this inbox is missing",
    advice:
      "Nothing was changed: without its ledger, Inlet would deliver every listed transfer again. Mount its disk, move it back, or restore it from a backup.",
  },
  WORK_RESTORED: {
    verdict: "fatal",
    happened: "The ledger in the work folder is an older copy",
    advice:
      "Nothing was changed: Inlet would deliver later transfers again. Restore a newer copy of the work folder, or remove the file named above to accept this one.",
  },
  WORK_OLDER: {
    verdict: "fatal",
    happened: "An older, incompatible version of Inlet wrote this work folder",
    advice:
      "Nothing was changed. Let the older version deliver its open transfers, then move the work folder away.",
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
  QUEUE_UNREACHABLE: {
    verdict: "retry",
    happened: "Redis, which holds the queue, could not be reached",
    advice: "Check queue and the redis settings, and that Redis is running; the daemon keeps trying.",
  },
  QUEUE_UNSUITABLE: {
    verdict: "fatal",
    happened: "This Redis cannot hold the queue",
    advice: "Use Redis 6.2 or newer, or Valkey, with maxmemory-policy noeviction.",
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
  COMMAND_FAILED: {
    verdict: "retry",
    happened: "The hand-off command failed",
    advice:
      "The folder stays delivered. Its output is in the log; inlet retry runs it again at once, even after the last attempt.",
  },
  WEBHOOK_FAILED: {
    verdict: "retry",
    happened: "The webhook did not accept the call",
    advice:
      "The folder stays delivered. Check the receiver; inlet retry calls it again at once, even after the last attempt.",
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
