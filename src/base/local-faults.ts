/** Faults on our own side: the disk, the configuration, the queue, hand-offs, notifications and the console. */
import { faults } from "./fault-kinds.ts";

export const LOCAL_FAULTS = {
  ...faults("command", "fatal", "setup", {
    TARGET_EXISTS: [
      "The target exists already, and Inlet never overwrites a file",
      "Choose another name or folder with --output, or move the existing file away.",
    ],
    NAME_UNUSABLE: [
      "The sender's file name is not safe to use here",
      "Download this file by its id, and name it with --output.",
    ],
    CONFIG_INVALID: [
      "The configuration or the command line is not valid",
      "Nothing was changed. Correct what the message names.",
    ],
    INBOX_HELD: [
      "Another Inlet holds the lock on this inbox",
      "If it is the daemon of this inbox, poll with inlet poll. Otherwise stop it, or configure another inbox. If no other Inlet runs and the inbox is on an SMB share, mount it with the option nobrl: without it, the server refuses the lock.",
    ],
    WORK_NOT_OURS: [
      "The work folder is not safe to use",
      "Nothing was changed. Run Inlet as the user who owns the folder. If Inlet already runs as that user, another user has interfered: inspect the work folder, and check who may write to the folder above it.",
    ],
    WORK_OLDER: [
      "An older, incompatible version of Inlet wrote this work folder",
      "Nothing was changed. Let the older version deliver its open transfers. Then set since: now for every mailbox, so that transfers that are still listed are not delivered again, and move the work folder away.",
    ],
    LINKS_MISSING: [
      "The work folder's file system has no hard links, so only one process may use it",
      "Set queue: embedded, or put inbox and work on another file system.",
    ],
    WORK_NEWER: [
      "A newer version of Inlet wrote this work folder",
      "Nothing was changed. Update this installation of Inlet.",
    ],
    NO_SUCH_TRANSFER: [
      "No transfer with this tracking-id is known here",
      "List the known transfers with inlet list.",
    ],
    ORDER_IMPOSSIBLE: [
      "This cannot be done",
      "Nothing was changed; inlet show lists the commands that apply to a transfer.",
    ],
    REQUEST_INVALID: ["The request is not valid", "Correct what the message names: nothing was done."],
    REQUEST_TOO_LARGE: ["The request is too large", "Choose fewer transfers at once."],
  }),
  ...faults("command", "fatal", "rights", {
    PERMISSION_DENIED: [
      "This user may not read or act here",
      "Run the command with sudo, or as the owner that the message names. Or let the user work through the daemon: set http.listen to a Unix socket, and add the user to the socket's group. To act, it also needs http.actions: true.",
    ],
    UNAUTHORIZED: [
      "The token is missing or wrong",
      "Send a token of http.tokens in the header Authorization: Bearer, or sign in at the console. Commands send none with an action: use the console, or run the command as the owner of the folders.",
    ],
    NOT_ALLOWED: [
      "This is not allowed here",
      "To act, use a token with the role operate, and set http.actions: true.",
    ],
  }),
  ...faults("command", "retry", "person", {
    WATCH_REFUSED: [
      "The system cannot watch this folder for changes",
      "Inlet checks the folder every few seconds instead. If the message says ENOSPC, raise fs.inotify.max_user_watches with sysctl; if it says EMFILE, raise fs.inotify.max_user_instances. Then restart Inlet.",
    ],
  }),
  ...faults("command", "fatal", "person", {
    WORK_LOST: [
      "The work folder of this inbox is missing",
      "Nothing was changed: without the ledger in that folder, Inlet would deliver every listed transfer again. Mount the disk of the work folder, move the folder back, or restore it from a backup.",
    ],
    WORK_RESTORED: [
      "The ledger in the work folder is an older copy",
      "Nothing was changed: Inlet would deliver again every transfer that the older copy does not record. Restore a newer copy of the work folder. Or, to accept the older copy, remove the file that the message names.",
    ],
  }),
  ...faults("command", "retry", "none", {
    DAEMON_UNREACHABLE: [
      "The daemon does not answer as it should",
      "Check that it runs, with the same version as this command.",
    ],
    ROUND_LOST: ["Another worker or an operator has already ended this round", "Nothing needs to be done."],
    STOPPED: ["Stopped before it was finished", "Run it again."],
    TOKENS_THROTTLED: ["Too many wrong tokens came from this address", "Wait a minute, then try again."],
    BUSY: ["The daemon is busy with other requests", "Try again in a moment."],
  }),
  ...faults("command", "retry", "unknown", {
    UNEXPECTED: [
      "Unexpected error",
      "The daemon retries by itself; please report it, with the log lines around it.",
    ],
  }),
  ...faults("disk", "wait", "person", {
    DISK_FULL: ["No space is left on the disk", "Free some space, or choose another folder."],
    DISK_REFUSED: [
      "The file could not be written",
      "Check that the folder exists, that its disk is healthy, and that Inlet may write there.",
    ],
    DISK_UNREADABLE: [
      "The file or folder could not be read",
      "Check that it exists, that its disk is healthy, and that this user may read it.",
    ],
    DISK_UNMOUNTED: [
      "The disk of a folder that Inlet needs is not mounted",
      "Mount the disk. Inlet writes nothing until then, and continues by itself within a minute.",
    ],
    DISK_REPLACED: [
      "Another disk or folder is in the place of a folder that Inlet needs",
      "Mount the right disk there, or move the right folder back. Inlet writes nothing until then, and continues by itself within a minute.",
    ],
    DISK_READ_ONLY: [
      "The disk is mounted read-only",
      "Linux does that after errors of the disk: read the kernel's messages with dmesg, and check the disk. Then mount it writable. Inlet continues by itself within a minute.",
    ],
    FOLDER_MISSING: [
      "A folder that Inlet needs is missing",
      "Move the folder back, or restore it from a backup. Inlet writes nothing until then, and continues by itself within a minute.",
    ],
    INBOX_MISSING: [
      "The inbox of this delivery is missing",
      "Nothing was lost: the content is complete in the work folder. Mount the disk of the inbox, or create the inbox. The delivery then follows by itself.",
    ],
  }),
  ...faults("disk", "wait", "setup", {
    INBOX_APART: [
      "This inbox is on another file system or mount than the work folder",
      "A delivery is one rename, which works only within one mount. Choose an inbox on the work folder's file system. Under systemd, name one folder above both folders in ReadWritePaths=. In a container, mount one volume that holds both folders.",
    ],
  }),
  ...faults("transfer", "wait", "person", {
    RECORD_UNREADABLE: [
      "A ledger record is damaged, or was written by another version of Inlet",
      "Do not delete the record: it says whether the transfer was delivered. Restore it from a backup, or update Inlet.",
    ],
    TARGET_UNSAFE: [
      "A link or file is in the way of a delivery",
      "Nothing was delivered. Replace the link or file with a folder: consumers must not put links where Inlet delivers.",
    ],
    TARGET_TAKEN: [
      "A file or folder that is not part of the delivery has the name that the delivery needs",
      "Move it away, because Inlet does not replace it. The delivery then continues by itself.",
    ],
  }),
  ...faults("transfer", "wait", "setup", {
    PROC_MISSING: [
      "The system has no usable /proc, which deliveries need",
      "Inlet reaches open folders through /proc/self/fd, so that no link can redirect a delivery. Mount /proc where Inlet runs. The delivery then follows by itself.",
    ],
    GROUP_UNKNOWN: [
      "This system has no group of this name",
      "Create the group, or correct handoff.group. In a container, give the group's number.",
    ],
    GROUP_REFUSED: [
      "Inlet may not give files to the group in handoff.group",
      "Make Inlet a member of the group. Under systemd, add SupplementaryGroups=GROUP, PrivateUsers=no and SystemCallFilter=@chown to the unit. For a container, use --group-add, group_add or supplementalGroups.",
    ],
  }),
  ...faults("transfer", "quarantine", "person", {
    CHECK_REFUSED: [
      "The check refused the transfer",
      "The content was not delivered. Discard it, retry it to check it again, or release it to deliver it without another check.",
    ],
    CHECK_CHANGED: [
      "The check changed the content",
      "The content was not delivered. A check must only read: correct its command, then retry the transfer.",
    ],
  }),
  ...faults("transfer", "retry", "person", {
    CHECK_FAILED: [
      "The check gave no verdict",
      "Nothing was delivered, and the content is kept. Correct the command, or the program that it needs. Inlet runs the check again by itself; inlet retry runs it at once.",
    ],
  }),
  ...faults("queue", "retry", "none", {
    QUEUE_UNREACHABLE: [
      "Redis, which holds the queue, could not be reached",
      "Check queue and the redis settings, and that Redis is running; the daemon keeps trying.",
    ],
    QUEUE_REFUSED: [
      "Redis, which holds the queue, refuses work",
      "Correct the cause in Redis; the daemon then continues by itself.",
    ],
  }),
  ...faults("queue", "fatal", "setup", {
    QUEUE_UNSUITABLE: [
      "This Redis cannot hold the queue",
      "Use Redis 6.2 or newer, or Valkey, with maxmemory-policy noeviction.",
    ],
  }),
  ...faults("handoff", "retry", "person", {
    COMMAND_FAILED: [
      "The hand-off command failed",
      "The folder stays delivered. inlet show prints the last output of the command. inlet retry runs the command again at once, even after the last attempt.",
    ],
    WEBHOOK_FAILED: [
      "The webhook did not accept the call",
      "The folder stays delivered. Check the receiver. inlet retry calls it again at once, even after the last attempt.",
    ],
  }),
  ...faults("notifications", "retry", "none", {
    MAIL_UNREACHABLE: [
      "The mail server could not be reached",
      "Check notify.mail.server, its port and the network. The daemon tries again by itself.",
    ],
    MAIL_DEFERRED: [
      "The mail server does not accept the mail now",
      "The daemon tries again by itself; if it persists, ask the mail server's administrator.",
    ],
    NOTIFY_WEBHOOK_FAILED: [
      "The webhook for notifications did not accept the call",
      "Check notify.webhook and its receiver. The daemon tries again by itself.",
    ],
  }),
  ...faults("notifications", "wait", "setup", {
    MAIL_TLS_REFUSED: [
      "No trusted TLS connection to the mail server could be established",
      "Check the server's certificate and notify.mail.tls; for a private certificate authority set notify.mail.ca.",
    ],
    MAIL_LOGIN_REFUSED: [
      "The mail server refused the login",
      "Check notify.mail.user and notify.mail.password, and whether the server offers a login at this port.",
    ],
    MAIL_REFUSED: [
      "The mail server refused the mail",
      "Check notify.mail.from and notify.mail.to, and whether the server accepts mail from this machine.",
    ],
    MAIL_RECIPIENTS_REFUSED: [
      "The mail server refused some recipients of a mail, and the others have it",
      "Check notify.mail.to. Later mails go to all recipients; this one is not sent again.",
    ],
  }),
  ...faults("late", "wait", "person", {
    POLL_OVERDUE: [
      "A mailbox was not polled in time",
      "Transfers may expire meanwhile. Read the last lines of the log, and restart the daemon.",
    ],
    DOWNLOAD_OVERDUE: [
      "A download did not begin in time",
      "Transfers may expire meanwhile. Read the last lines of the log, and restart the daemon.",
    ],
    DELIVERY_OVERDUE: [
      "A complete transfer was not moved into the inbox in time",
      "Look at the inbox: a file of another program may have its name. The delivery is tried again every few minutes.",
    ],
    ORDER_OVERDUE: [
      "An order was not carried out in time",
      "It stays recorded, and is tried again every half minute. Read the log for what stops it.",
    ],
    HANDOFF_OVERDUE: [
      "A hand-off was not tried in time",
      "Consumers are not told of deliveries. Read the last lines of the log, and restart the daemon.",
    ],
    NOTIFICATION_OVERDUE: [
      "A notification was not sent in time",
      "Look at the status instead. Read the last lines of the log, and restart the daemon.",
    ],
    FLEET_INCOMPLETE: [
      "No process of the fleet has a role that is needed",
      "Start a process with that role. Each process needs the same inbox and the same queue.",
    ],
    TIMERS_LATE: [
      "The process stood still",
      "The machine was overloaded, or the process was paused. Look at its CPU, memory and disks.",
    ],
  }),
  ...faults("mailbox", "wait", "person", {
    ARRIVAL_MISSED: [
      "An expected transfer did not arrive",
      "Ask the sender. This message disappears when one arrives.",
    ],
    MAILBOX_PAUSED: [
      "An operator has paused the mailbox",
      "It is not polled, and its transfers may expire. Resume it with inlet resume.",
    ],
    ENTRIES_UNUSABLE: [
      "Entries of the service's list cannot be used",
      "Do what the message says: these transfers are not downloaded.",
    ],
    VERIFICATION_ENDS: [
      "The verification of a mailbox's address ends soon, or has ended",
      "Verify the address again with inlet verify-address.",
    ],
  }),
  ...faults("mailbox", "wait", "setup", {
    SECRET_UNREADABLE: [
      "A secret cannot be read",
      "Check that its file, variable, credential or command exists and that Inlet may read it.",
    ],
  }),
};
