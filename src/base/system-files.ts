/** The files of the real machine. Only this file and the commands that people run use Node's file system. */
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

/** For `catch`: adds the path, which errors of reads and writes lack. */
function rethrowWith(path: unknown): (error: Error) => never {
  return (error) => {
    throw Object.assign(error, { path });
  };
}

function withPathInErrors<Call>(call: Call): Call {
  const plain = call as (path: unknown, ...args: unknown[]) => Promise<unknown>;
  return ((path: unknown, ...args: unknown[]) => plain(path, ...args).catch(rethrowWith(path))) as Call;
}

/**
 * An open file, which must be closed. Its errors name the path. Node's `FileHandle` would take a third more of the main
 * thread's time for each call, and small transfers consist mostly of such calls.
 */
function descriptor(fd: number, path: string) {
  const rethrow = rethrowWith(path);
  return {
    /** The path of an entry of an open folder. It stays valid if the folder is moved, and if a link takes its place. */
    at: (name: string): string => `/proc/self/fd/${fd}/${name}`,
    /** Writes all of `content`, at the current position. */
    write: (content: string | Uint8Array): Promise<void> => write(fd, content).catch(rethrow),
    /** Returns the number of bytes read. */
    read: async (buffer: Uint8Array, position: number): Promise<number> =>
      (await read(fd, buffer, 0, buffer.byteLength, position).catch(rethrow)).bytesRead,
    readText: (): Promise<string> => readAll(fd, "utf8").catch(rethrow),
    stat: (): Promise<fs.Stats> => fstat(fd).catch(rethrow),
    statExactly: (): Promise<fs.BigIntStats> => fstat(fd, { bigint: true }).catch(rethrow),
    chmod: (mode: number): Promise<void> => fchmod(fd, mode).catch(rethrow),
    truncate: (): Promise<void> => ftruncate(fd).catch(rethrow),
    sync: (): Promise<void> => fsync(fd).catch(rethrow),
    datasync: (): Promise<void> => fdatasync(fd).catch(rethrow),
    close: (): Promise<void> => close(fd).catch(rethrow),
    /** Only for a folder, which has nothing to write: a detour through another thread would take far longer. */
    closeNow: (): void => fs.closeSync(fd),
  };
}

/** An open file of any machine. */
export type OpenFile = ReturnType<typeof descriptor>;

/** Made with `promisify`: `node:fs/promises` costs more if a call fails, and many of these calls look for missing files. */
export const systemFiles = {
  lstat: promisify(fs.lstat),
  stat: promisify(fs.stat),
  statfs: promisify(fs.statfs),
  readFile: withPathInErrors(promisify(fs.readFile)),
  readdir: promisify(fs.readdir),
  opendir: promisify(fs.opendir),
  rm: promisify(fs.rm),
  rmdir: promisify(fs.rmdir),
  mkdir: promisify(fs.mkdir),
  rename: promisify(fs.rename),
  link: promisify(fs.link),
  unlink: promisify(fs.unlink),
  writeFile: withPathInErrors(promisify(fs.writeFile)),
  copyFile: promisify(fs.copyFile),
  chmod: promisify(fs.chmod),
  lchown: promisify(fs.lchown),
  realpath: promisify(fs.realpath),
  openFile: async (path: string, flags: string | number, mode: number): Promise<OpenFile> =>
    descriptor(await open(path, flags, mode), path),
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
