/** The files of the real machine. Only this file, and the commands of people, use Node's file system. */
import fs from "node:fs";
import { promisify } from "node:util";

const [open, write, read, readAll] = [
  promisify(fs.open),
  promisify(fs.writeFile),
  promisify(fs.read),
  promisify(fs.readFile),
];
const [fstat, fchmod, ftruncate] = [promisify(fs.fstat), promisify(fs.fchmod), promisify(fs.ftruncate)];
const [fsync, fdatasync, close] = [promisify(fs.fsync), promisify(fs.fdatasync), promisify(fs.close)];

/**
 * An open file, which must be closed. Node's `FileHandle` takes a third more of the main thread's time for each call, and
 * small transfers consist mostly of such calls.
 */
export class Descriptor {
  readonly #fd: number;

  constructor(fd: number) {
    this.#fd = fd;
  }

  /** The path of an entry of an open folder. It stays valid if the folder is moved, and if a link takes its place. */
  at(name: string): string {
    return `/proc/self/fd/${this.#fd}/${name}`;
  }

  /** Writes all of it, at the current position. */
  async write(content: string | Uint8Array): Promise<void> {
    await write(this.#fd, content);
  }

  /** Returns the number of bytes read. */
  async read(buffer: Uint8Array, position: number): Promise<number> {
    return (await read(this.#fd, buffer, 0, buffer.byteLength, position)).bytesRead;
  }

  readText(): Promise<string> {
    return readAll(this.#fd, "utf8");
  }

  stat(): Promise<fs.Stats> {
    return fstat(this.#fd);
  }

  statExactly(): Promise<fs.BigIntStats> {
    return fstat(this.#fd, { bigint: true });
  }

  async chmod(mode: number): Promise<void> {
    await fchmod(this.#fd, mode);
  }

  async truncate(): Promise<void> {
    await ftruncate(this.#fd);
  }

  async sync(): Promise<void> {
    await fsync(this.#fd);
  }

  async datasync(): Promise<void> {
    await fdatasync(this.#fd);
  }

  async close(): Promise<void> {
    await close(this.#fd);
  }

  /** Only for a folder, which has nothing to write: the way through another thread would take far longer. */
  closeNow(): void {
    fs.closeSync(this.#fd);
  }
}

/** An open file of any machine. */
export type OpenFile = Pick<Descriptor, keyof Descriptor>;

/** Node's own promises cost more if a call fails, and many of these calls look for missing files. */
export const systemFiles = {
  lstat: promisify(fs.lstat),
  stat: promisify(fs.stat),
  statfs: promisify(fs.statfs),
  readFile: promisify(fs.readFile),
  readdir: promisify(fs.readdir),
  opendir: promisify(fs.opendir),
  rm: promisify(fs.rm),
  rmdir: promisify(fs.rmdir),
  mkdir: promisify(fs.mkdir),
  rename: promisify(fs.rename),
  link: promisify(fs.link),
  unlink: promisify(fs.unlink),
  writeFile: promisify(fs.writeFile),
  copyFile: promisify(fs.copyFile),
  chmod: promisify(fs.chmod),
  lchown: promisify(fs.lchown),
  realpath: promisify(fs.realpath),
  openFile: async (path: string, flags: string | number, mode: number): Promise<OpenFile> =>
    new Descriptor(await open(path, flags, mode)),
  /**
   * The folder has exactly this mode from its creation on: a user who may write the parent could exchange it before a chmod.
   * The umask belongs to the whole process, so nothing else may run meanwhile.
   */
  async makeFolder(path: string, mode: number): Promise<void> {
    const umask = process.umask(0);
    try {
      fs.mkdirSync(path, { mode });
    } finally {
      process.umask(umask);
    }
  },
};

export type Files = typeof systemFiles;
