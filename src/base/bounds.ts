/**
 * What others can make Inlet spend: for each door, how many bytes, how many things, and how long. `docs/security.md` says
 * what happens beyond. A door is a heading here; the architecture test refuses a read of a stranger's file without a bound.
 */
const MIB = 1024 ** 2;

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
