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
/** How many files that nobody delivered `inlet verify` names for each folder. */
export const INBOX_EXTRA_FILES = 1_000;

// Unpacking: senders choose the archives. Their files count in `limits.maxFiles` and `limits.maxTransferSize`.

/** Text compresses to a twentieth, and logs to a hundredth. An archive that promises more is probably made to fill a disk. */
export const UNPACK_RATIO = 200;
/** A small archive may expand to this size, whatever its ratio is. */
export const UNPACK_SMALL_BYTES = 16 * MIB;
/** The time that unpacking may take: a fixed part, and a part for each mebibyte. */
export const UNPACK_TIME_MS = { whole: 60_000, perMebibyte: 1_000 };

// Files of operators, and programs and servers that they have chosen. Times are in the configuration.

export const CONFIG_BYTES = 1024 ** 2;
/** A file or an output that holds a secret. */
export const SECRET_BYTES = 64 * 1024;
/** A file of certificates or of a private key: a bundle of all public authorities has 250 KB. */
export const PEM_BYTES = 4 * 1024 ** 2;
/** An order, in the work folder: it has a few hundred bytes. */
export const ORDER_BYTES = 64 * 1024;
/** Of the output of a hand-off command or check: so much of its start, and of its end. The rest is read and dropped. */
export const OUTPUT_BYTES = 2_048;
/** One answer of a mail server. */
export const MAIL_ANSWER_BYTES = 64 * 1024;
