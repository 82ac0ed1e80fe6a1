/** Reads V8's CPU profile of a run, and sorts the main thread's time into a few groups. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const GROUPS = {
  loading: "loading the program",
  files: "passing file-system calls to other threads",
  requests: "requests and answers, undici's part",
  hashing: "hashing",
  packages: "other packages",
  own: "Inlet's own code",
  node: "promises, timers and streams of Node",
  garbage: "collecting garbage",
  native: "V8 and Node outside of JavaScript",
  waiting: "waiting for the wire, the disk and other threads",
} as const;

type Group = keyof typeof GROUPS;

/** Of the whole time. */
export type Shares = Readonly<Record<Group, number>>;

interface Frame {
  readonly functionName: string;
  readonly url: string;
  /** From 0. */
  readonly lineNumber: number;
}

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: Frame;
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Options for Node, which writes a file for each of its threads. */
export function profileInto(folder: string): string[] {
  return ["--cpu-prof", `--cpu-prof-dir=${folder}`];
}

/** Of the main thread. */
export function readShares(folder: string): Shares {
  // CPU.DAY.TIME.PROCESS.THREAD.NUMBER.cpuprofile
  const name = readdirSync(folder).find((it) => it.split(".")[4] === "0");
  if (name === undefined) throw new Error("Node has written no profile");
  return sharesOf(JSON.parse(readFileSync(join(folder, name), "utf8")) as CpuProfile);
}

function sharesOf({ nodes, samples, timeDeltas }: CpuProfile): Shares {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const callers = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  const groups = new Map<number, Group>();
  const groupOf = (id: number): Group => {
    const known = groups.get(id) ?? findGroup(stackOf(id, frames, callers));
    groups.set(id, known);
    return known;
  };
  const micros = Object.fromEntries(Object.keys(GROUPS).map((group) => [group, 0])) as Record<Group, number>;
  for (const [at, id] of samples.entries()) micros[groupOf(id)] += timeDeltas[at] ?? 0;
  const all = Object.values(micros).reduce((sum, it) => sum + it, 0);
  for (const group of Object.keys(micros) as Group[]) micros[group] /= all;
  return micros;
}

/** The innermost first. */
function stackOf(
  id: number,
  frames: ReadonlyMap<number, Frame>,
  callers: ReadonlyMap<number, number>,
): Frame[] {
  const stack: Frame[] = [];
  for (let at: number | undefined = id; at !== undefined; at = callers.get(at)) {
    const frame = frames.get(at);
    if (frame !== undefined) stack.push(frame);
  }
  return stack;
}

const STATES: ReadonlyMap<string, Group> = new Map([
  ["(garbage collector)", "garbage"],
  ["(idle)", "waiting"],
  ["(program)", "native"],
]);

/** Applies to everything called from there. */
const LOADING = /^node:internal\/(modules|bootstrap)\//;

/** The first match decides. */
const GROUPS_BY_FILE: readonly (readonly [RegExp, Group])[] = [
  [/^src\/base\/(descriptor|durable)\.ts$|^node:(internal\/)?fs/, "files"],
  [/^node:internal\/crypto\/hash$|^src\/model\/checksum\.ts$/, "hashing"],
  [/\bnode_modules\/undici\//, "requests"],
  [/\bnode_modules\//, "packages"],
  [/^src\//, "own"],
];

/** By the innermost frame with a known file; a stack without one is Node's own. */
function findGroup(stack: readonly Frame[]): Group {
  const state = STATES.get(stack[0]?.functionName ?? "");
  if (state !== undefined) return state;
  if (stack.some(({ url }) => LOADING.test(url))) return "loading";
  for (const frame of stack) {
    const file = sourceOf(frame);
    const found = GROUPS_BY_FILE.find(([pattern]) => pattern.test(file));
    if (found !== undefined) return found[1];
  }
  return "node";
}

const builtFiles = new Map<string, readonly string[]>();

/** In the built program, a comment names the source of the lines below it. */
function sourceOf({ url, lineNumber }: Frame): string {
  if (!url.startsWith("file:")) return url;
  const lines = builtFiles.get(url) ?? readFileSync(new URL(url), "utf8").split("\n");
  builtFiles.set(url, lines);
  const comment = lines.slice(0, lineNumber + 1).findLast((line) => /^\/\/ \S+\.[cm]?[jt]s$/.test(line));
  return comment?.slice("// ".length) ?? url;
}
