/**
 * Open files by their descriptor. Node's `FileHandle` takes a third more of the main thread's time for each call, and small
 * transfers consist mostly of such calls.
 */
import fs from "node:fs";
import { promisify } from "node:util";

const open = promisify(fs.open);
const write = promisify(fs.writeFile);
const read = promisify(fs.read);
const stat = promisify(fs.fstat);
const chmod = promisify(fs.fchmod);
const truncate = promisify(fs.ftruncate);
const sync = promisify(fs.fsync);
const datasync = promisify(fs.fdatasync);
const close = promisify(fs.close);

/** For files that others may replace: follows no link, and does not wait for the writer of a pipe. */
export const READ_PLAIN_FILE = fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK;

/** Must be closed. */
export class Descriptor {
  readonly #fd: number;

  constructor(fd: number) {
    this.#fd = fd;
  }

  /** Writes all of it, at the current position. */
  async write(content: string | Uint8Array): Promise<void> {
    await write(this.#fd, content);
  }

  /** Returns the number of bytes read. */
  async read(buffer: Uint8Array, position: number): Promise<number> {
    return (await read(this.#fd, buffer, 0, buffer.byteLength, position)).bytesRead;
  }

  stat(): Promise<fs.Stats> {
    return stat(this.#fd);
  }

  async chmod(mode: number): Promise<void> {
    await chmod(this.#fd, mode);
  }

  async truncate(): Promise<void> {
    await truncate(this.#fd);
  }

  async sync(): Promise<void> {
    await sync(this.#fd);
  }

  async datasync(): Promise<void> {
    await datasync(this.#fd);
  }

  async close(): Promise<void> {
    await close(this.#fd);
  }
}

/** `mode`: for a file that this creates. */
export async function openDescriptor(
  path: string,
  flags: string | number,
  mode = 0o600,
): Promise<Descriptor> {
  return new Descriptor(await open(path, flags, mode));
}

/** Closes the file after `work`, even after a failure. */
export async function withDescriptor<Value>(
  path: string,
  flags: string | number,
  work: (file: Descriptor) => Promise<Value>,
  mode?: number,
): Promise<Value> {
  const file = await openDescriptor(path, flags, mode);
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}
