/** A daemon whose disk fails: a process of its own, and a tracer that makes some of its calls on files fail. */
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { End, Life } from "./failing-disk-child.ts";
import { startCommand } from "./program.ts";
import { ROOT } from "./root.ts";
import { startTracing, type TraceOptions } from "./strace.ts";

const CHILD = join(ROOT, "test/support/failing-disk-child.ts");
/** Far longer than a life takes on a busy machine. */
const HANGS_AFTER_MS = 180_000;
/** More temporary files and stages than a life makes. */
const MOST_RANDOM_NAMES = 100;
/** Names that are made of random bytes: of temporary files, and of stages. */
const RANDOM = /^(.*\/\.)([0-9a-f]{12})(\.part)$|^(.*\/staging\/.*~)([0-9a-f]{16})([/.].*)$/;

/** Kinds of system calls, under every name that they have on some machine. */
const CALLS = {
  write: "?write,?writev,?pwrite64,?pwritev",
  fsync: "?fsync,?fdatasync",
  rename: "?rename,?renameat,?renameat2",
  link: "?link,?linkat",
  open: "?open,?openat,?openat2",
  mkdir: "?mkdir,?mkdirat",
  remove: "?unlink,?unlinkat,?rmdir",
  chmod: "?chmod,?fchmod,?fchmodat,?fchmodat2",
  stat: "?stat,?lstat,?fstat,?newfstatat,?statx",
  statfs: "?statfs,?fstatfs",
  list: "?getdents,?getdents64",
  read: "?read,?pread64",
} as const;

export type Kind = keyof typeof CALLS;
export const KINDS = Object.keys(CALLS) as readonly Kind[];

export interface Failure {
  readonly kinds: readonly Kind[];
  readonly error: "EIO" | "ENOSPC";
  /** As strace has it: each name of a system call is counted by itself. */
  readonly when: string;
}

/** How a life ended, and the calls that were seen. `died`: why the process did not survive it. */
export type Seen = (End | { readonly died: string }) & { readonly calls: readonly string[] };

export interface DiskDaemon {
  live(life: Life): Promise<Seen>;
  /** Nothing fails; all calls are seen. */
  liveTraced(life: Life): Promise<Seen>;
  /** `written`: the files below the folder that are written to. Only those calls count as writes. */
  liveFailing(life: Life, failure: Failure, written: readonly string[]): Promise<Seen>;
}

/** All its work on files happens on one thread, so that one thread is all that has to be traced. */
export async function startDiskDaemon(): Promise<DiskDaemon> {
  const child = startCommand(process.execPath, [CHILD], {
    cwd: ROOT,
    env: { UV_THREADPOOL_SIZE: "1" },
  });
  const { stdin, stdout, stderr, pid } = child;
  if (stdin === null || stdout === null || stderr === null || pid === undefined) throw new Error("no pipes");
  const ended = once(child, "close");
  let complaint = "";
  stderr.setEncoding("utf8").on("data", (text: string) => {
    complaint += text;
  });
  stdin.on("error", () => {});
  const answers = createInterface({ input: stdout })[Symbol.asyncIterator]();
  if ((await answers.next()).value !== "ready") throw new Error(`it did not start: ${complaint}`);
  const thread = threadForFiles(pid);

  const live = async (life: Life): Promise<End | { died: string }> => {
    stdin.write(`${JSON.stringify(life)}\n`);
    const timer = setTimeout(() => {
      complaint += "it hangs";
      child.kill("SIGKILL");
    }, HANGS_AFTER_MS);
    const { done, value } = await answers.next();
    clearTimeout(timer);
    if (done !== true && complaint === "") return JSON.parse(value) as End;
    child.kill("SIGKILL");
    await ended;
    return { died: `${child.signalCode ?? child.exitCode}: ${complaint}` };
  };
  const liveUnder = async (life: Life, options: TraceOptions): Promise<Seen> => {
    const tracing = await startTracing(thread, options);
    const end = await live({ ...life, foreseeable: true });
    return { ...end, calls: await tracing.stop() };
  };
  return {
    live: async (life) => ({ ...(await live(life)), calls: [] }),
    liveTraced: (life) => liveUnder(life, { calls: Object.values(CALLS).join(",") }),
    liveFailing(life, { kinds, error, when }, written) {
      const calls = kinds.map((kind) => CALLS[kind]).join(",");
      // The thread also writes to wake the main one up, and must not fail in that: paths tell the one from the other.
      const paths = kinds.includes("write") ? written.map((path) => join(life.folder, path)) : [];
      return liveUnder(life, { calls, paths, fail: { error, when } });
    },
  };
}

/** One call of a traced life: its kind, which one of its name it was, and what strace says of it. */
export interface Call {
  readonly kind: Kind;
  readonly nth: number;
  readonly text: string;
}

/** The calls on files below a folder, in their order. */
export function readCalls(lines: readonly string[], folder: string): Call[] {
  const named = new Map<string, number>();
  return lines.flatMap((text) => {
    const name = text.slice(0, text.indexOf("("));
    const kind = KINDS.find((it) => CALLS[it].split(",").includes(`?${name}`));
    if (kind === undefined || (kind === "write" && !text.includes(`<${folder}/`))) return [];
    const nth = (named.get(name) ?? 0) + 1;
    named.set(name, nth);
    return [{ kind, nth, text: text.replaceAll(folder, "") }];
  });
}

/** The files below its folder that a traced life wrote to. */
export function writtenBy(calls: readonly Call[]): string[] {
  const paths = calls.flatMap(({ kind, text }) =>
    kind === "write" ? (/<\/([^>]*)>/.exec(text)?.[1] ?? []) : [],
  );
  return [...new Set(paths.flatMap(withOtherNames))];
}

/** Where one file with a random name was written, others may be. */
function withOtherNames(path: string): string[] {
  const [before, random, after] =
    RANDOM.exec(path)
      ?.slice(1)
      .filter((part) => part !== undefined) ?? [];
  if (random === undefined) return [path];
  const numbers = Array.from({ length: MOST_RANDOM_NAMES }, (_, at) =>
    (at + 1).toString(16).padStart(random.length, "0"),
  );
  return numbers.map((number) => `${before}${number}${after}`);
}

function threadForFiles(pid: number): number {
  const found = readdirSync(`/proc/${pid}/task`).filter(
    (thread) => readFileSync(`/proc/${pid}/task/${thread}/comm`, "utf8").trim() === "libuv-worker",
  );
  if (found.length !== 1) throw new Error(`${found.length} threads for files instead of one`);
  return Number(found[0]);
}
