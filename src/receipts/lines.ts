/** The lines of a file, however long the file is, and whatever a power cut made of it. */
import { createReadStream } from "node:fs";

const NEWLINE = 0x0a;
const CHUNK_BYTES = 256 * 1024;

/** As many at a time as were read at once. `undefined` stands for a line that is too long: it is passed over, never kept. */
export async function* readLines(
  path: string,
  mostBytes: number,
  signal?: AbortSignal,
): AsyncGenerator<(string | undefined)[], void, undefined> {
  /** The beginning of a line whose end has not come yet; `undefined` while one that is too long is passed over. */
  let begun: Buffer | undefined = Buffer.alloc(0);
  const options = { highWaterMark: CHUNK_BYTES, ...(signal === undefined ? {} : { signal }) };
  for await (const chunk of createReadStream(path, options)) {
    const lines: (string | undefined)[] = [];
    let rest = chunk as Buffer;
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      lines.push(begun === undefined ? undefined : textOf(begun, rest.subarray(0, end), mostBytes));
      begun = Buffer.alloc(0);
      rest = rest.subarray(end + 1);
    }
    if (begun !== undefined) {
      begun = begun.length + rest.length > mostBytes ? undefined : Buffer.concat([begun, rest]);
    }
    yield lines;
  }
  if (begun === undefined || begun.length > 0) yield [begun?.toString()];
}

function textOf(begun: Buffer, end: Buffer, mostBytes: number): string | undefined {
  if (begun.length + end.length > mostBytes) return undefined;
  return begun.length === 0 ? end.toString() : Buffer.concat([begun, end]).toString();
}
