/**
 * What others can make Inlet spend: for each door, how many bytes, how many things, and how long. `docs/security.md` says
 * what happens beyond. A door is a heading here; the architecture test refuses a read of a stranger's file without a bound.
 */
const [KIB, MIB] = [1024, 1024 ** 2];

// The inbox: consumers may change, replace or add any file there.

/** The largest manifest. One whose size is not recorded may have `few`, and this much for each file of its delivery. */
export const INBOX_MANIFEST_BYTES = { most: 512 * MIB, few: 4 * MIB, perFile: 2 * KIB };
/** The same for sums, by the files of their manifest: a line is a sum, a folder's name and a file's name. */
export const INBOX_SUMS_BYTES = { few: 64 * KIB, perFile: KIB };
/** One entry of a manifest or of sums. No longer text is parsed in one piece. */
export const INBOX_ENTRY_BYTES = MIB;
/** Files are read in pieces of this size. Of a manifest whose id alone is wanted, only the first one is read. */
export const INBOX_READ_BYTES = 64 * KIB;
/** The entries of a delivered folder that are looked at: as many as `limits.maxFiles` may allow. */
export const INBOX_FOLDER_ENTRIES = 10_000_000;
/** The entries of a whole inbox that are looked at for earlier deliveries. */
export const INBOX_TREE_ENTRIES = 100_000;
/** `inlet verify` has no records: it reads a manifest of so many files, the default of `limits.maxFiles`. */
export const INBOX_VERIFY_FILES = 100_000;
/** `inlet verify` names at most so many files that a folder has and its manifest does not. */
export const INBOX_EXTRA_FILES = 1_000;

// Unpacking: senders choose the archives. Their files count in `limits.maxFiles` and `limits.maxTransferSize`.

/** Text compresses to a twentieth, and logs to a hundredth. An archive that promises more is probably made to fill a disk. */
export const UNPACK_RATIO = 200;
/** A small archive may expand to this size, whatever its ratio is. */
export const UNPACK_SMALL_BYTES = 16 * MIB;
/** The time that unpacking may take: a fixed part, and a part for each mebibyte. */
export const UNPACK_TIME_MS = { whole: 60_000, perMebibyte: 1_000 };

// Files of operators, and programs and servers that they have chosen. Times are in the configuration.

export const CONFIG_BYTES = MIB;
/** A file or an output that holds a secret. */
export const SECRET_BYTES = 64 * KIB;
/** A file of certificates or of a private key: a bundle of all public authorities has 250 KB. */
export const PEM_BYTES = 4 * MIB;
/** An order, in the work folder: it has a few hundred bytes. */
export const ORDER_BYTES = 64 * KIB;
/** Of the output of a hand-off command or check: so much of its start, and of its end. The rest is read and dropped. */
export const OUTPUT_BYTES = 2 * KIB;
/** One answer of a mail server. */
export const MAIL_ANSWER_BYTES = 64 * KIB;

// Redis: whoever can write there chooses the size of a value. The library reads an answer as a whole.

/** One answer: a job has a few hundred bytes, and a list of stalled jobs may name many thousands. */
export const REDIS_ANSWER_BYTES = 8 * MIB;

// HTTP callers: the console with its API, its probes and its metrics.

/** Connections that wait in the kernel until the console takes them. With more, clients try again after a second or two. */
export const MAX_QUEUED_CONNECTIONS = 4_096;
/** Connections that have not sent the whole head of a request, or wait for their turn. A new one replaces the oldest, of its own address first. */
export const MAX_SILENT_CONNECTIONS = 1_024;
/** What such connections have sent, together: a first piece has up to 64 KiB. Beyond, those that wait longest end. */
export const MAX_WAITING_BYTES = 4 * MIB;
/** Requests at once, except probes and event streams. A new one replaces one whose client has kept us waiting longest. */
export const MAX_REQUESTS = 200;
/** From one address; a proxy needs few. */
export const MAX_REQUESTS_OF_PEER = 100;
/** With event streams, probes and refused requests. A new one replaces one that was refused, and whose client keeps us waiting. */
export const MAX_OPEN_REQUESTS = 1_024;
/** Event streams at once. */
export const MAX_STREAMS = 50;
/** Per address, so that one client cannot use up all of them. People behind one proxy share its address. */
export const MAX_STREAMS_OF_PEER = 20;
/** The head of a request, and its body, must arrive in this time. */
export const REQUEST_MS = 10_000;
/** A list may name a thousand transfers. */
export const MAX_BODY_BYTES = 512 * KIB;
/** Anyone may send this form. */
export const MAX_SIGN_IN_BYTES = 4 * KIB;
/** How long the rest of a refused body is read and dropped: most clients send all of it before they read the answer. */
export const DROPPED_BODY_MS = 2_000;
/** An answer ends if its client has left some of it unread for so long. */
export const UNREAD_MS = 60_000;
/** Of all answers together. Beyond, the largest ends. */
export const MAX_UNREAD_BYTES = 16 * MIB;
/** Long answers are made in pieces. Other work runs between two of them. */
export const PIECE_BYTES = 128 * KIB;
/** After each piece of work for callers, the rest of the daemon has this many times as long for itself. */
export const REST_PER_PIECE = 2;
/** And so many turns of the event loop, in each of which Node takes a connection: a probe may be behind many others. */
export const TURNS_PER_PIECE = 50;
/** Callers that are refused for now may come back after this time. */
export const RETRY_AFTER_SECONDS = 5;
/** More wrong tokens from one address are answered after a pause. */
export const MAX_WRONG_TOKENS_PER_MINUTE = 10;
export const WRONG_TOKEN_PAUSE_MS = 1_000;
/** Refusals that wait at once. More are answered without a pause, since a waiting one holds memory. */
export const MAX_WAITING_REFUSALS = 50;
/** Informational answers (1xx) of a service before its answer. */
export const MAX_INTERIM_ANSWERS = 16;
