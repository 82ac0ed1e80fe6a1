/** A disk that does not answer when some files are read. */
import { onMachine, systemMachine } from "../../src/base/machine.ts";

/** Runs `work` on a machine whose disk answers EIO to each read of a path with this end. */
export function whileUnread<Result>(end: string, work: () => Result): Result {
  const failing = <Args extends unknown[], Value>(read: (path: string, ...rest: Args) => Promise<Value>) => {
    return (path: string, ...rest: Args): Promise<Value> =>
      path.endsWith(end)
        ? Promise.reject(Object.assign(new Error("EIO"), { code: "EIO", syscall: "read" }))
        : read(path, ...rest);
  };
  const { files } = systemMachine;
  const unread = {
    ...files,
    lstat: failing(files.lstat as never) as typeof files.lstat,
    readdir: failing(files.readdir as never) as typeof files.readdir,
    readFile: failing(files.readFile as never) as typeof files.readFile,
    openFile: failing(files.openFile),
  };
  return onMachine({ ...systemMachine, files: unread }, work);
}
