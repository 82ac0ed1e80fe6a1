/** The table of faults: for each code what it is about, its verdict, who has to act, and its message and advice to the operator. */

/**
 * What Inlet does about a fault.
 * - `retry`: it may pass by itself; try again soon, with back-off.
 * - `wait`: something outside has to change first (a person, a lock, a limit); trying again soon is useless or harmful.
 * - `quarantine`: Inlet cannot vouch for the content; keep it apart and report it.
 * - `fatal`: trying again cannot help; the request or the configuration has to change.
 */
export type Verdict = "retry" | "wait" | "quarantine" | "fatal";

/**
 * Who has to act: it decides how commands exit, and what doctor and the status say. `none`: it may pass by itself. `person`: the
 * operator, a sender, or an administrator of the service. `setup`: the configuration or the installation has to change. `rights`: this
 * user may not do it.
 */
export type Actor = "none" | "person" | "setup" | "rights" | "unknown";

/**
 * What a fault is about. `command`: the answer to a command or a request, or the end of the program. `late`: something has not
 * happened, and no failed call explains it.
 */
export type Area =
  | "command"
  | "service"
  | "mailbox"
  | "transfer"
  | "disk"
  | "queue"
  | "handoff"
  | "notifications"
  | "late";

export interface FaultMeaning {
  readonly area: Area;
  readonly verdict: Verdict;
  readonly actor: Actor;
  /** A sentence without its full stop: details may follow after a colon. */
  readonly happened: string;
  /** What the operator can do. */
  readonly advice: string;
}

export const FAULT_CODES = {
  // Between Inlet and the service, about no single transfer.
  ...faults("service", "retry", "none", {
    SERVICE_UNREACHABLE:
      "The service could not be reached. Check the base URL, the network, name resolution and the proxy; the daemon retries by itself.",
    SERVICE_TIMEOUT:
      "The service did not answer in time. The daemon retries by itself; if it persists, check the network or raise service.timeout.",
    CONNECTION_LOST:
      "The connection was lost before the answer was complete. The daemon retries by itself; if it persists, look for a proxy or firewall that cuts long downloads.",
    SERVER_FAULT:
      "The service failed. The daemon retries by itself; if it persists, contact the service's administrator.",
    CONFLICT:
      "The request conflicts with what the service is doing with the transfer or the address. The daemon retries by itself; if it persists, contact the service's administrator.",
    BAD_ANSWER:
      "The answer does not follow the interface. A proxy or login page may have answered; check that service.baseUrl leads to the service itself.",
    POLL_TOO_LONG:
      "The poll took too long. Inlet downloads the transfers listed so far and polls again. Ask the service's administrator why its lists are slow.",
  }),
  ...faults("service", "wait", "none", {
    TLS_REFUSED:
      "No trusted TLS connection to the service could be established. Check the base URL and the service's certificate; for a private certificate authority set service.ca.",
    PROXY_REFUSED:
      "The proxy refused the connection. Check service.proxy (or HTTPS_PROXY and NO_PROXY) and the proxy's rules.",
    REDIRECT_REFUSED:
      "The service redirected to another address, and Inlet sends secrets only to the configured one. If the service has moved, set service.baseUrl to its new address; otherwise ask its administrator.",
    SERVICE_RESTS:
      "The service rests. Inlet asks again by itself: when a pause that the service asked for is over, and at least once an hour; if it lasts, contact the service's administrator.",
    RATE_LIMITED:
      "The service limits the rate of requests. The daemon waits as long as the service asks; if it persists, poll less often.",
  }),
  ...faults("service", "fatal", "person", {
    NOT_SUPPORTED:
      "The service does not support this operation. Ask the service's administrator whether the operation is disabled, or the service is too old for it.",
    BAD_REQUEST:
      "The service did not understand the request. Check the ids and options; if they are right, please report this as a defect of Inlet.",
    NOT_ACCEPTABLE:
      "The service cannot answer in a form that Inlet accepts. Check service.acceptLanguage. If it names a usual language, a proxy may have changed the request: ask the service's administrator.",
    API_VERSION:
      "The service does not offer the interface version that Inlet needs. Inlet needs 1.12 or a newer 1.x: ask the service's administrator for an update.",
  }),
  ...faults("service", "retry", "person", {
    ANSWER_TOO_LARGE:
      "The answer is implausibly large. Check that service.baseUrl leads to the service itself, and contact the service's administrator.",
    LIST_ENDLESS: "The list of transfers does not end. Contact the service's administrator.",
    TOO_MANY_TRANSFERS:
      "The service lists more new transfers than Inlet takes up at once. If you expect that many, do nothing: later polls take up the rest. Otherwise contact the service's administrator.",
  }),
  ...faults("service", "wait", "person", {
    TOKEN_REFUSED:
      "The service does not accept the verification of this address. Ask the service's administrator to register the client id for this address, or verify the address with inlet verify-address.",
    NOT_LICENSED:
      "The service's REST interface is not licensed. Ask the service's administrator to enable the interface.",
    POLICY_REFUSED:
      "The service's policy refuses the request. Ask the service's administrator which rule applies to this address.",
    ACCESS_REFUSED:
      "The service, or a proxy in front of it, refused access. Check the base URL and the proxy, and ask the service's administrator.",
  }),
  ...faults("service", "fatal", "setup", {
    NO_SUCH_ENDPOINT:
      "The service does not have this endpoint. Check service.baseUrl, the part of the address before /api. An older service may lack this operation.",
  }),

  // About one transfer: its password, its content, its size.
  ...faults("transfer", "fatal", "person", {
    NOT_FOUND:
      "The service did not find the transfer or file. Check the id. A transfer may have expired, or not be ready yet.",
    TRANSFER_DELETED: "The service has deleted the transfer. Ask the sender to send it again.",
  }),
  ...faults("transfer", "wait", "person", {
    PASSWORD_REFUSED:
      "The service refused the transfer password. Ask the sender for the right password. Do not guess: too many wrong passwords lock or destroy the transfer.",
    PASSWORD_UNUSABLE:
      "The password is empty, or not one line of text. Supply the password again, as one line of UTF-8 text.",
    SECURITY_MODE:
      "Inlet sends no password by itself to a transfer with this security mode. Ask the sender how to open it. If that takes a password, supply it; otherwise download it in a browser, then discard it here.",
    BROWSER_ONLY:
      "The service opens this transfer only in a browser, because of how its sender has protected it. Open it in a browser, then discard it here: neither a password nor a retry helps.",
    MODE_UNKNOWN:
      "The service does not name the security mode of this transfer, though it has named those of others. No password is sent by itself. A proxy may have removed the mode: ask the service's administrator. If such transfers take the passwords of rules, set service.rulesWithoutMode: true; if not, set it to false, and supply a password for each.",
    TRANSFER_LOCKED:
      "The service has locked the transfer after too many wrong passwords. Wait: the service unlocks the transfer after some time. Requests before that only prolong the lock.",
  }),
  ...faults("transfer", "retry", "none", {
    PASSWORDS_HELD:
      "No password is sent now, because the verdict on the last one is unknown. Inlet continues by itself when the service answers again. Each attempt with an unknown verdict counts as spent.",
    NOT_READY:
      "The service is still preparing the transfer. Inlet continues by itself when the service lists the transfer as active.",
    ONE_AT_A_TIME:
      "Another transfer with thousands of files is being downloaded from this service. Inlet continues by itself when that download is done.",
    GAVE_WAY: "The download was slow, and gave its slot to waiting transfers. Inlet resumes it by itself.",
    RANGE_REFUSED:
      "The service did not resume the download at the requested position. Inlet downloads the file from the start.",
  }),
  ...faults("transfer", "quarantine", "person", {
    MESSAGE_REFUSED:
      "The service does not return the confidential message of this transfer. Ask the sender for the message, then release the transfer to deliver its files without it.",
    CHECKSUMS_UNREADABLE:
      "The checksums file cannot be parsed. Save it with inlet api checksums --output FILE, and report its format as a defect of Inlet.",
    CHECKSUM_MISMATCH:
      "The bytes received do not match the sender's checksum. The content was not delivered. Retry once; if it happens again, ask the sender to send the transfer again.",
    SIZE_MISMATCH:
      "The number of bytes differs from the announced size. The content was not delivered. Retry once; if it happens again, ask the sender to send the transfer again.",
    ALGORITHM_UNKNOWN:
      "The checksum's algorithm is not supported. Verify the file by hand, and ask for support of the algorithm.",
    UNVERIFIABLE:
      "The service gives no checksum for the content, and this mailbox delivers only verified transfers. Check the content and release the transfer, or set verify: prefer for the mailbox.",
    FILE_REMOVED:
      "The service has removed a file of the transfer. Ask the sender for the file. A release delivers the other files, and their manifest names the missing one.",
    CHECKSUMS_INCOMPLETE:
      "The checksums file and the file list name different files. Ask the sender which files belong to the transfer, then release or discard it.",
    LIMIT_EXCEEDED:
      "The transfer exceeds the configured limits. Raise limits.maxTransferSize or limits.maxFiles and retry it, or discard it.",
    ARCHIVE_WRONG:
      "The ZIP does not match the file list. Do not use the ZIP. Download it again, or download the files one by one.",
  }),

  // On this machine: the disk, the configuration, the queue, hand-offs, notifications and the console.
  ...faults("command", "fatal", "setup", {
    TARGET_EXISTS:
      "The target exists already, and Inlet never overwrites a file. Choose another name or folder with --output, or move the existing file away.",
    NAME_UNUSABLE:
      "The sender's file name is not safe to use here. Download this file by its id, and name it with --output.",
    CONFIG_INVALID:
      "The configuration or the command line is not valid. Nothing was changed. Correct what the message names.",
    INBOX_HELD:
      "Another Inlet holds the lock on this inbox. If it is the daemon of this inbox, poll with inlet poll. Otherwise stop it, or configure another inbox. If no other Inlet runs and the inbox is on an SMB share, mount it with the option nobrl: without it, the server refuses the lock.",
    WORK_OLDER:
      "An older, incompatible version of Inlet wrote this work folder. Nothing was changed. Let the older version deliver its open transfers. Then move the work folder away, and say inlet adopt, so that transfers that are still listed are not delivered again.",
    LINKS_MISSING:
      "The work folder's file system has no hard links, so only one process may use it. Set queue: embedded, or put inbox and work on another file system.",
    WORK_NEWER:
      "A newer version of Inlet wrote this work folder. Nothing was changed. Update this installation of Inlet.",
    NO_SUCH_TRANSFER:
      "No transfer with this tracking-id is known here. List the known transfers with inlet list.",
    ORDER_IMPOSSIBLE:
      "This cannot be done. Nothing was changed; inlet show lists the commands that apply to a transfer.",
    REQUEST_INVALID: "The request is not valid. Correct what the message names: nothing was done.",
    REQUEST_TOO_LARGE: "The request is too large. Choose fewer transfers at once.",
  }),
  ...faults("command", "fatal", "rights", {
    FILES_UNPROTECTED:
      "Other users may change what Inlet trusts: its configuration, secrets, state or work. Nothing was changed. Look at who wrote there. Then run the commands that the message names as root, and start Inlet again. On a network file system, set the options of the mount instead. In a container, run them on the host.",
    WORK_NOT_OURS:
      "The work folder is not safe to use. Nothing was changed. Run Inlet as the user who owns the folder. If Inlet already runs as that user, another user has interfered: inspect the work folder, and check who may write to the folder above it.",
    PERMISSION_DENIED:
      "This user may not read or act here. Run the command with sudo, or as the owner that the message names. Or let the user work through the daemon: set http.listen to a Unix socket, and add the user to the socket's group. To act, it also needs http.actions: true.",
    UNAUTHORIZED:
      "The token is missing or wrong. Send a token of http.tokens in the header Authorization: Bearer, or sign in at the console. Commands send no token: use the console, or run the command as root or as the owner of the work folder.",
    NOT_ALLOWED:
      "This is not allowed here. To act, use a token with the role operate, and set http.actions: true.",
  }),
  ...faults("command", "wait", "setup", {
    FILES_EXPOSED:
      "Other users may be able to change what Inlet trusts: its configuration, secrets, state or work. If everyone who may write there may also decide what Inlet does, do nothing. Otherwise run the commands that the message names as root; Inlet looks again every few minutes.",
  }),
  ...faults("command", "retry", "person", {
    WATCH_REFUSED:
      "The system cannot watch this folder for changes. Inlet checks the folder every few seconds instead. If the message says ENOSPC, raise fs.inotify.max_user_watches with sysctl; if it says EMFILE, raise fs.inotify.max_user_instances. Then restart Inlet.",
  }),
  ...faults("command", "fatal", "person", {
    MEMBER_OLDER:
      "A process of an earlier version of Inlet works on this inbox, and would not find what this one records. Nothing was changed. Stop it, or update it: this one goes on within a minute.",
    WORK_LOST:
      "The work folder is missing, or is another one. Nothing was changed: without its ledger, Inlet would deliver every listed transfer again. Mount its disk, move it back, or restore it from a backup. If it is lost, decide with inlet adopt or inlet anew.",
    WORK_RESTORED:
      "The ledger in the work folder is an older copy. Nothing was changed: Inlet would deliver again every transfer that the older copy does not record. Restore a newer copy of the work folder. Without one, decide with inlet adopt or inlet anew.",
  }),
  ...faults("command", "retry", "none", {
    DAEMON_UNREACHABLE:
      "The daemon does not answer as it should. Check that it runs, with the same version as this command.",
    ROUND_LOST: "Another worker or an operator has already ended this round. Nothing needs to be done.",
    STOPPED: "Stopped before it was finished. Run it again.",
    TOKENS_THROTTLED:
      "Too many wrong tokens came from this address. Check the token: a right one is accepted at once.",
    BUSY: "The daemon is busy with other requests. Try again in a moment.",
  }),
  ...faults("command", "wait", "setup", {
    SOCKET_UNSAFE:
      "The daemon has no socket that commands can trust. Give it a folder that only root and Inlet can write to, as can each folder above: RuntimeDirectory=inlet in its unit, a tmpfs at /run/inlet in a container, else a path in RUNTIME_DIRECTORY. Each daemon of one inbox needs its own. Deliveries go on, and the daemon tries again by itself.",
  }),
  ...faults("command", "retry", "unknown", {
    UNEXPECTED:
      "Unexpected error. The daemon retries by itself; please report it, with the log lines around it.",
  }),
  ...faults("disk", "wait", "person", {
    DISK_FULL: "No space is left on the disk. Free some space, or choose another folder.",
    DISK_REFUSED:
      "The file could not be written. Check that the folder exists, that its disk is healthy, and that Inlet may write there.",
    DISK_UNREADABLE:
      "The file or folder could not be read. Check that it exists, that its disk is healthy, and that this user may read it.",
    DISK_UNMOUNTED:
      "The disk of a folder that Inlet needs is not mounted. Mount the disk. Inlet writes nothing until then, and continues by itself within a minute.",
    DISK_REPLACED:
      "Another disk or folder is in the place of a folder that Inlet needs. Mount the right disk there, or move the right folder back. Inlet writes nothing until then, and continues by itself within a minute.",
    DISK_READ_ONLY:
      "The disk is mounted read-only. Linux does that after errors of the disk: read the kernel's messages with dmesg, and check the disk. Then mount it writable. Inlet continues by itself within a minute.",
    FOLDER_MISSING:
      "A folder that Inlet needs is missing. Move the folder back, or restore it from a backup. Inlet writes nothing until then, and continues by itself within a minute. If it is the work folder, and it is lost, decide with inlet adopt or inlet anew.",
    CONTENT_CHANGED:
      "Files in the work folder changed after Inlet had verified them. They are not delivered. Check the disk, and which other programs write there. Inlet downloads the transfer again by itself. If its delivery was already decided, redeliver it.",
    INBOX_MISSING:
      "The inbox of this delivery is missing. Nothing was lost: the content is complete in the work folder. Mount the disk of the inbox, or create the inbox. The delivery then follows by itself.",
  }),
  ...faults("disk", "wait", "setup", {
    INBOX_APART:
      "This inbox is on another file system or mount than the work folder. A delivery is one rename, which works only within one mount. Choose an inbox on the work folder's file system. Under systemd, name one folder above both folders in ReadWritePaths=. In a container, mount one volume that holds both folders.",
  }),
  ...faults("transfer", "wait", "person", {
    RECORD_UNREADABLE:
      "A ledger record is damaged, or was written by another version of Inlet. Do not delete the record: it says whether the transfer was delivered. Restore it from a backup, or update Inlet.",
    TARGET_UNSAFE:
      "A link or file is in the way of a delivery. Nothing was delivered. Replace the link or file with a folder: consumers must not put links where Inlet delivers.",
    TARGET_TAKEN:
      "A file or folder that is not part of the delivery has the name that the delivery needs. Move it away, because Inlet does not replace it. The delivery then continues by itself.",
  }),
  ...faults("transfer", "wait", "setup", {
    PROC_MISSING:
      "The system has no usable /proc, which deliveries need. Inlet reaches open folders through /proc/self/fd, so that no link can redirect a delivery. Mount /proc where Inlet runs. The delivery then follows by itself.",
    GROUP_UNKNOWN:
      "This system has no group of this name. Create the group, or correct handoff.group. In a container, give the group's number.",
    GROUP_REFUSED:
      "Inlet may not give files to the group in handoff.group. Make Inlet a member of the group. Under systemd, add SupplementaryGroups=GROUP, PrivateUsers=no and SystemCallFilter=@chown to the unit. For a container, use --group-add, group_add or supplementalGroups.",
  }),
  ...faults("transfer", "quarantine", "person", {
    CHECK_REFUSED:
      "The check refused the transfer. The content was not delivered. Discard it, retry it to check it again, or release it to deliver it without another check.",
    CHECK_CHANGED:
      "The check changed the content. The content was not delivered. A check must only read: correct its command, then retry the transfer.",
  }),
  ...faults("transfer", "retry", "person", {
    CHECK_FAILED:
      "The check gave no verdict. Nothing was delivered, and the content is kept. Correct the command, or the program that it needs. Inlet runs the check again by itself; inlet retry runs it at once.",
  }),
  ...faults("queue", "retry", "none", {
    QUEUE_UNREACHABLE:
      "Redis, which holds the queue, could not be reached. Check queue and the redis settings, and that Redis is running; the daemon keeps trying.",
    QUEUE_REFUSED:
      "Redis, which holds the queue, refuses work. Correct the cause in Redis; the daemon then continues by itself.",
  }),
  ...faults("queue", "fatal", "setup", {
    QUEUE_UNSUITABLE:
      "This Redis cannot hold the queue. Use Redis 6.2 or newer, or Valkey, with maxmemory-policy noeviction.",
  }),
  ...faults("handoff", "retry", "person", {
    COMMAND_FAILED:
      "The hand-off command failed. The folder stays delivered. inlet show prints the last output of the command. inlet retry runs the command again at once, even after the last attempt.",
    WEBHOOK_FAILED:
      "The webhook did not accept the call. The folder stays delivered. Check the receiver. inlet retry calls it again at once, even after the last attempt.",
  }),
  ...faults("notifications", "retry", "none", {
    MAIL_UNREACHABLE:
      "The mail server could not be reached. Check notify.mail.server, its port and the network. The daemon tries again by itself.",
    MAIL_DEFERRED:
      "The mail server does not accept the mail now. The daemon tries again by itself; if it persists, ask the mail server's administrator.",
    NOTIFY_WEBHOOK_FAILED:
      "The webhook for notifications did not accept the call. Check notify.webhook and its receiver. The daemon tries again by itself.",
  }),
  ...faults("notifications", "wait", "setup", {
    MAIL_TLS_REFUSED:
      "No trusted TLS connection to the mail server could be established. Check the server's certificate and notify.mail.tls; for a private certificate authority set notify.mail.ca.",
    MAIL_LOGIN_REFUSED:
      "The mail server refused the login. Check notify.mail.user and notify.mail.password, and whether the server offers a login at this port.",
    MAIL_REFUSED:
      "The mail server refused the mail. Check notify.mail.from and notify.mail.to, and whether the server accepts mail from this machine.",
    MAIL_RECIPIENTS_REFUSED:
      "The mail server refused some recipients of a mail; the others received it. Check notify.mail.to. Later mails go to all recipients; this one is not sent again.",
  }),
  ...faults("late", "wait", "person", {
    POLL_OVERDUE:
      "A mailbox was not polled in time. Transfers may expire meanwhile. Read the last lines of the log, and restart the daemon.",
    DOWNLOAD_OVERDUE:
      "A download did not begin in time. Transfers may expire meanwhile. Read the last lines of the log, and restart the daemon.",
    DELIVERY_OVERDUE:
      "A complete transfer was not moved into the inbox in time. Look at the inbox: a file of another program may have its name. The delivery is tried again every few minutes.",
    ORDER_OVERDUE:
      "An order was not carried out in time. It stays recorded, and is tried again every half minute. Read the log for what stops it.",
    HANDOFF_OVERDUE:
      "A hand-off was not tried in time. Consumers are not told of deliveries. Read the last lines of the log, and restart the daemon.",
    NOTIFICATION_OVERDUE:
      "A notification was not sent in time. Look at the status instead. Read the last lines of the log, and restart the daemon.",
    FLEET_INCOMPLETE:
      "No process of the fleet has a role that is needed. Start a process with that role. Each process needs the same inbox and the same queue.",
    TIMERS_LATE:
      "The process stood still. The machine was overloaded, or the process was paused. Look at its CPU, memory and disks.",
  }),
  ...faults("mailbox", "wait", "person", {
    ARRIVAL_MISSED:
      "An expected transfer did not arrive. Ask the sender. This message disappears when one arrives.",
    MAILBOX_PAUSED:
      "An operator has paused the mailbox. It is not polled, and its transfers may expire. Resume it with inlet resume.",
    RECORDS_MISSING:
      "Transfers may have been delivered before, and their records are missing. Look at what the consumers of the inbox have. Then say inlet adopt, which leaves these transfers out, or inlet anew, which delivers them, perhaps once more.",
    ENTRIES_UNUSABLE:
      "Entries of the service's list cannot be used. These transfers are not downloaded; the message says why.",
    VERIFICATION_ENDS:
      "The verification of a mailbox's address ends soon, or has ended. Verify the address again with inlet verify-address.",
  }),
  ...faults("mailbox", "wait", "setup", {
    SECRET_UNREADABLE:
      "A secret cannot be read. Check that its file, variable, credential or command exists and that Inlet may read it.",
  }),
};

export type FaultCode = keyof typeof FAULT_CODES;

/** A code may come from a record or an answer, so it may be any text. */
export function actorOf(code: string | undefined): Actor {
  return meaningOf(code)?.actor ?? "unknown";
}

/** As `actorOf`. */
export function areaOf(code: string | undefined): Area | undefined {
  return meaningOf(code)?.area;
}

function meaningOf(code: string | undefined) {
  return code !== undefined && Object.hasOwn(FAULT_CODES, code) ? FAULT_CODES[code as FaultCode] : undefined;
}

/** Faults with the same area, verdict and actor, as code → what happened, a full stop, and advice. */
function faults<Code extends string>(
  area: Area,
  verdict: Verdict,
  actor: Actor,
  texts: Readonly<Record<Code, `${string}. ${string}`>>,
): Readonly<Record<Code, FaultMeaning>> {
  const meanings = Object.entries<string>(texts).map(([code, text]) => {
    const [, happened = "", advice = ""] = /^(.*?)\. (.*)$/.exec(text) ?? [];
    return [code, { area, verdict, actor, happened, advice }];
  });
  return Object.fromEntries(meanings) as Record<Code, FaultMeaning>;
}
