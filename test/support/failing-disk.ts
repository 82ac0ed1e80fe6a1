/** A daemon whose disk fails: its own process, with strace making some of its file-system calls fail. */
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { DaemonTask, RunEnd } from "./failing-disk-child.ts";
import { childProgram, startCommand } from "./program.ts";
import { startTracing, type TraceOptions } from "./strace.ts";

/** Far longer than a run takes on a busy machine. */
const HANGS_AFTER_MS = 180_000;
/** More temporary files and stages than a run makes. */
const MAX_RANDOM_NAMES = 100;
/** Random names of temporary files and of stages. */
const RANDOM = /^(.*\/\.)([0-9a-f]{12})(\.part)$|^(.*\/staging\/.*~)([0-9a-f]{16})([/.].*)$/;

/** Kinds of system calls, with their names on all machines. */
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
  /** strace's syntax; each name of a system call is counted separately. */
  readonly when: string;
}

/** The end of a run, and its traced calls. `died`: why the process ended. */
export type RunResult = (RunEnd | { readonly died: string }) & { readonly calls: readonly string[] };

export interface DiskDaemon {
  run(task: DaemonTask): Promise<RunResult>;
  /** Nothing fails, and all calls are traced. */
  runTraced(task: DaemonTask): Promise<RunResult>;
  /** `written`: the files in the folder whose writes count. */
  runFailing(task: DaemonTask, failure: Failure, written: readonly string[]): Promise<RunResult>;
}

/** With a single libuv thread, so that only this thread has to be traced. */
export async function startDiskDaemon(): Promise<DiskDaemon> {
  const child = startCommand(process.execPath, [childProgram("failing-disk-child")], {
    env: { UV_THREADPOOL_SIZE: "1" },
  });
  const { stdin, stdout, stderr, pid } = child;
  if (stdin === null || stdout === null || stderr === null || pid === undefined) throw new Error("no pipes");
  const ended = once(child, "close");
  let errors = "";
  stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  stdin.on("error", () => {});
  const answers = createInterface({ input: stdout })[Symbol.asyncIterator]();
  if ((await answers.next()).value !== "ready") throw new Error(`it did not start: ${errors}`);
  const thread = libuvThread(pid);

  const run = async (task: DaemonTask): Promise<RunEnd | { died: string }> => {
    stdin.write(`${JSON.stringify(task)}\n`);
    const timer = setTimeout(() => {
      errors += "it hangs";
      child.kill("SIGKILL");
    }, HANGS_AFTER_MS);
    const { done, value } = await answers.next();
    clearTimeout(timer);
    if (done !== true && errors === "") return JSON.parse(value) as RunEnd;
    child.kill("SIGKILL");
    await ended;
    return { died: `${child.signalCode ?? child.exitCode}: ${errors}` };
  };
  const runUnder = async (task: DaemonTask, options: TraceOptions): Promise<RunResult> => {
    const tracing = await startTracing(thread, options);
    const end = await run({ ...task, predictableNames: true });
    return { ...end, calls: await tracing.stop() };
  };
  return {
    run: async (task) => ({ ...(await run(task)), calls: [] }),
    runTraced: (task) => runUnder(task, { calls: Object.values(CALLS).join(",") }),
    runFailing(task, { kinds, error, when }, written) {
      const calls = kinds.map((kind) => CALLS[kind]).join(",");
      // The thread also writes to wake the main thread, which must not fail: select writes by path.
      const paths = kinds.includes("write") ? written.map((path) => join(task.folder, path)) : [];
      return runUnder(task, { calls, paths, fail: { error, when } });
    },
  };
}

/** One call of a traced run. `nth`: among the calls with its name. `text`: strace's line. */
export interface Call {
  readonly kind: Kind;
  readonly nth: number;
  readonly text: string;
}

/** The calls on files in a folder, in their order. */
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

/** The files in its folder that a traced run wrote to. */
export function writtenBy(calls: readonly Call[]): string[] {
  const paths = calls.flatMap(({ kind, text }) =>
    kind === "write" ? (/<\/([^>]*)>/.exec(text)?.[1] ?? []) : [],
  );
  return [...new Set(paths.flatMap(withOtherNames))];
}

/** A path with a random name also stands for the paths with other random names. */
function withOtherNames(path: string): string[] {
  const [before, random, after] =
    RANDOM.exec(path)
      ?.slice(1)
      .filter((part) => part !== undefined) ?? [];
  if (random === undefined) return [path];
  const numbers = Array.from({ length: MAX_RANDOM_NAMES }, (_, at) =>
    (at + 1).toString(16).padStart(random.length, "0"),
  );
  return numbers.map((number) => `${before}${number}${after}`);
}

function libuvThread(pid: number): number {
  const found = readdirSync(`/proc/${pid}/task`).filter(
    (thread) => readFileSync(`/proc/${pid}/task/${thread}/comm`, "utf8").trim() === "libuv-worker",
  );
  if (found.length !== 1) throw new Error(`${found.length} libuv threads instead of one`);
  return Number(found[0]);
}
