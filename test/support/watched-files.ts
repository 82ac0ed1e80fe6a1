/** The machine's files, with a look at each call before it is made. This file needs no test runner. */
import { join } from "node:path";
import { type Files, type OpenFile, systemFiles } from "../../src/base/system-files.ts";

export interface FileCall {
  /** Of `Files` or `OpenFile`. */
  readonly name: string;
  /** What it changes or reads, without `/proc/self/fd`. */
  readonly path: string;
  /** Of a rename or a link. */
  readonly from?: string;
  /** The file may be created. */
  readonly creates: boolean;
}

/** `before` may throw in place of the call. */
export function watchFiles(before: (call: FileCall) => void): Files {
  const openFolders = new Map<string, string>();
  const nameOf = (path: unknown) => {
    const [prefix = "", name = ""] = String(path).split(/(?<=^\/proc\/self\/fd\/\d+\/)/);
    const open = openFolders.get(prefix);
    return open === undefined ? String(path) : join(open, name);
  };
  const files = watchAll(systemFiles, (name, [path, other]) => {
    const creates = name === "writeFile" || name === "copyFile";
    const isMove = name === "rename" || name === "link";
    before({ name, path: nameOf(isMove ? other : path), creates, ...(isMove ? { from: nameOf(path) } : {}) });
  });
  return {
    ...files,
    async openFile(path, flags, mode): Promise<OpenFile> {
      const name = nameOf(path);
      before({ name: "openFile", path: name, creates: flags !== "r" && typeof flags !== "number" });
      const open = await systemFiles.openFile(path, flags, mode);
      openFolders.set(open.at(""), name);
      const { at, closeNow } = open;
      return {
        ...watchAll(open, (call) => before({ name: call, path: name, creates: false })),
        at,
        closeNow,
      };
    },
  };
}

function watchAll<Owner extends object>(
  owner: Owner,
  before: (name: string, args: unknown[]) => void,
): Owner {
  const calls = Object.entries(owner).map(([name, call]) => {
    const watched = async (...args: unknown[]) => {
      before(name, args);
      return call(...args);
    };
    return [name, watched];
  });
  return Object.fromEntries(calls) as Owner;
}
