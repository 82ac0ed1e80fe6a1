/**
 * Reads the files and folders of an inbox, which others may have changed, replaced or added. It follows no link, waits for no
 * writer of a pipe, looks at the kind, the owner and the size of the open file first, and reads up to a bound, in pieces.
 */
import type { Dirent } from "node:fs";
import { basename, dirname } from "node:path";
import { INBOX_ENTRY_BYTES, INBOX_READ_BYTES } from "./bounds.ts";
import { systemCode, tolerate } from "./faults.ts";
import { lookAtLink, opendir, openFile, READ_PLAIN_FILE } from "./files.ts";
import { inTurns } from "./timers.ts";

/** A file that cannot be used. The message completes a sentence that begins with its folder. */
export class DamagedFolder extends Error {
  override name = "DamagedFolder";
}

/** It is there, and is not the file that was delivered. */
export class ForeignFile extends DamagedFolder {}

/** The file system refused to read the file. A later attempt may succeed. */
export class RefusedRead extends DamagedFolder {}

export interface ReadBound {
  readonly maxBytes: number;
  /** It must have exactly this size. */
  readonly isExact?: boolean;
  /** It must belong to the owner of its folder. */
  readonly isOwned?: boolean;
}

/** The content in pieces that the caller may keep. `onForeign`: may go on. Throws `DamagedFolder`. */
export async function* piecesOf(
  path: string,
  { maxBytes, isExact, isOwned }: ReadBound,
  onForeign = (problem: string): void => {
    throw new ForeignFile(problem);
  },
): AsyncGenerator<Buffer> {
  const name = basename(path);
  const file = await openFile(path, READ_PLAIN_FILE).catch((error: unknown) => refuse(name, error));
  try {
    const facts = await file.stat();
    if (!facts.isFile()) throw new ForeignFile(`${name} is not a plain file`);
    if (isExact && facts.size !== maxBytes)
      onForeign(`${name} has ${facts.size} bytes instead of ${maxBytes}`);
    else if (facts.size > maxBytes) onForeign(`${name} is larger than any of ours`);
    const { uid } = (isOwned && (await lookAtLink(dirname(path)))) || facts;
    if (facts.uid !== uid) onForeign(`${name} belongs to user ${facts.uid}`);
    for (let at = 0, count = -1; at < facts.size && count !== 0; at += count) {
      const piece = Buffer.allocUnsafe(Math.min(INBOX_READ_BYTES, facts.size - at));
      count = await file.read(piece, at).catch((error: unknown) => refuse(name, error));
      yield piece.subarray(0, count);
    }
  } finally {
    await file.close();
  }
}

/** The lines of each piece, while other work runs. `name`: of their file. Throws `DamagedFolder` for a line that is too long. */
export async function* linesOf(pieces: AsyncIterable<Buffer>, name: string): AsyncGenerator<string[]> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let rest = "";
  for await (const piece of inTurns(pieces)) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > INBOX_ENTRY_BYTES) throw new DamagedFolder(`${name} has a line that is too long`);
    yield lines;
  }
  yield [rest];
}

/** The entries of a folder, at most this many, while other work runs. A missing folder has none. */
export async function* entriesOf(folder: string, maxEntries: number): AsyncGenerator<Dirent> {
  let left = maxEntries;
  for await (const entry of inTurns((await opendir(folder).catch(tolerate("ENOENT", "ENOTDIR"))) ?? [])) {
    if (left-- <= 0) return;
    yield entry;
  }
}

function refuse(name: string, error: unknown): never {
  const code = systemCode(error);
  if (code === "ELOOP") throw new ForeignFile(`${name} is a link`);
  if (code === "ENOENT" || code === "ENOTDIR") throw new DamagedFolder(`${name} is missing`);
  throw code === "" ? error : new RefusedRead(`${name} cannot be read (${code})`, { cause: error });
}
