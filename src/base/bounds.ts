/** What others can make Inlet spend: the bounds of each door, in one table. `docs/security.md` says what happens beyond. */

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
