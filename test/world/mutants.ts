/**
 * Measures what worlds are worth. Each patch in `mutations/` breaks one promise of the program. This applies them to copies of the
 * tree, one patch to each, and tells at which world each is found. A seed finds a mutation if its world fails there, and holds in
 * the tree as it is.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { ROOT } from "../support/root.ts";
import type { Begun, SeedReport } from "./seeds.ts";

const FOLDER = join(import.meta.dirname, "mutations");
const NAME = /^(\d\d)-[a-z0-9-]+\.patch$/;

/** What a world needs. Whatever of it is missing is left out. */
const TREE = ["src", "simulator", "test/world", "test/support", "package.json", "tsconfig.json"];

/** A world takes less than a second, on a machine that many others use much more. */
const LONGEST_WORLD_MS = 300_000;
const LONGEST_START_MS = 300_000;

export interface Mutation {
  /** Two digits. */
  readonly number: string;
  /** Of its file, without the ending. */
  readonly name: string;
  readonly path: string;
  /** Which promise it breaks. */
  readonly description: string;
}

export async function listMutations(): Promise<Mutation[]> {
  const files = (await readdir(FOLDER)).toSorted();
  return Promise.all(
    files.map(async (file) => {
      const [, number = ""] = NAME.exec(file) ?? [];
      if (number === "") throw new Error(`${file} is not named like 01-what-breaks.patch`);
      const path = join(FOLDER, file);
      const [description = ""] = (await readFile(path, "utf8")).split("diff --git", 1);
      const name = file.slice(0, -".patch".length);
      return { number, name, path, description: description.trim().replaceAll("\n", " ") };
    }),
  );
}

/** In a folder below a repository, Git would skip each file of a patch without a word. Here it knows of no repository. */
const OUTSIDE_OF_REPOSITORIES = {
  GIT_DIR: "/dev/null",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
};

/** `folder`: the root of a tree. With `check`, nothing is changed. Throws what Git says if the patch does not apply. */
export async function applyPatch(folder: string, path: string, how?: "check"): Promise<void> {
  const env = { ...process.env, ...OUTSIDE_OF_REPOSITORIES };
  const args = ["apply", "--verbose", ...(how === "check" ? ["--check"] : []), path];
  const { stderr } = await promisify(execFile)("git", args, { cwd: folder, env });
  if (/^Skipped patch/m.test(stderr)) throw new Error(stderr);
}

export interface MutantsOptions {
  /** The first one that is tried for each mutation. */
  readonly seed: number;
  /** Of processor time, for each mutation. */
  readonly minutes: number;
  /** Mutations that are tried at once. */
  readonly jobs: number;
  /** Numbers of mutations. Missing: all of them. */
  readonly only: readonly string[] | undefined;
}

interface Row {
  readonly mutation: Mutation;
  readonly worlds: number;
  /** Of processor time. */
  readonly seconds: number;
  /** The seed that finds it, with the first violation. */
  readonly found?: { readonly seed: number; readonly violation: string };
}

export async function runMutants(options: MutantsOptions, print: (text: string) => void): Promise<void> {
  const { seed, minutes, jobs, only } = options;
  const wanted = (await listMutations()).filter(({ number }) => only?.includes(number) ?? true);
  print(`The first seed is ${seed}. Each of ${wanted.length} mutations gets ${minutes} minutes.`);
  const original = await copyTree();
  const reference = new Reference(original);
  const rows: Row[] = [];
  const left = [...wanted];
  const work = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const row = await tryMutation(next, options, original, reference);
      rows.push(row);
      print(describeRow(row));
    }
  };
  try {
    await Promise.all(Array.from({ length: jobs }, work));
  } finally {
    reference.close();
    await rm(original, { recursive: true, force: true });
  }
  print("");
  const sorted = rows.toSorted((a, b) => (a.mutation.name < b.mutation.name ? -1 : 1));
  for (const row of sorted) print(describeRow(row));
  print(`found ${rows.filter(({ found }) => found !== undefined).length} of ${wanted.length}`);
}

function describeRow({ mutation, worlds, seconds, found }: Row): string {
  const name = mutation.name.padEnd(40);
  if (found === undefined) return `${name} not found in ${worlds} worlds, ${seconds.toFixed(0)} s`;
  const where = `world ${worlds}`.padEnd(10);
  return `${name} ${where} ${seconds.toFixed(0).padStart(4)} s  seed ${found.seed}: ${found.violation}`;
}

/** The whole run uses one state of the tree, whatever people write meanwhile. */
async function copyTree(from = ROOT): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "inlet-mutant-"));
  for (const entry of TREE) {
    await mkdir(dirname(join(folder, entry)), { recursive: true });
    await cp(join(from, entry), join(folder, entry), { recursive: true }).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    });
  }
  await symlink(await realpath(join(from, "node_modules")), join(folder, "node_modules"));
  return folder;
}

async function tryMutation(
  mutation: Mutation,
  { seed: first, minutes }: MutantsOptions,
  original: string,
  reference: Reference,
): Promise<Row> {
  const folder = await copyTree(original);
  try {
    await applyPatch(folder, mutation.path);
    let spent = 0;
    let next = first;
    // A process that has crashed is followed by another one.
    while (spent < minutes * 60 - 1) {
      const left = `${minutes - spent / 60}`;
      const explorer = new Explorer(folder, ["--all", "--seed", `${next}`, "--minutes", left]);
      try {
        for await (const { seed, violations } of explorer.reports()) {
          if ((await reference.violationsOf(seed)).length > 0) continue;
          const seconds = spent + explorer.seconds;
          const [violation = ""] = violations;
          return { mutation, worlds: seed - first + 1, seconds, found: { seed, violation } };
        }
      } finally {
        explorer.kill();
      }
      spent += explorer.seconds;
      next = Math.max(next, (explorer.seed ?? next) + 1);
    }
    return { mutation, worlds: next - first, seconds: spent };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A process that runs worlds of one tree. */
class Explorer {
  readonly #child: ChildProcess;
  #watch: NodeJS.Timeout | undefined;
  #isStuck = false;
  #stderr = "";
  /** Of the world that runs, or ran last. */
  seed: number | undefined;
  /** The processor time that it has spent. */
  seconds = 0;
  readonly #over: Promise<unknown>;

  constructor(folder: string, args: readonly string[]) {
    const stdio = ["pipe", "pipe", "pipe", "ipc"] as const;
    this.#child = spawn(process.execPath, ["test/world/explore.ts", ...args], {
      cwd: folder,
      stdio: [...stdio],
    });
    this.#over = once(this.#child, "close");
    this.#child.on("message", (begun: Begun) => {
      this.seed = begun.seed;
      this.seconds = begun.seconds;
      this.#expectWithin(LONGEST_WORLD_MS);
    });
    this.#child.stderr?.on("data", (chunk: Buffer) => {
      this.#stderr = `${this.#stderr}${chunk}`.slice(-2_000);
    });
    // Its end is seen elsewhere.
    this.#child.stdin?.on("error", () => {});
    this.#expectWithin(LONGEST_START_MS);
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Runs the world of a seed next, if the process reads seeds. */
  ask(seed: number): void {
    this.#child.stdin?.write(`${seed}\n`);
  }

  /** What the process reports; at last, if it has not ended well, that as a violation of its last seed. */
  async *reports(): AsyncGenerator<SeedReport, void, undefined> {
    const { stdout } = this.#child;
    if (stdout === null) return;
    for await (const line of createInterface({ input: stdout })) yield JSON.parse(line) as SeedReport;
    await this.#over;
    clearTimeout(this.#watch);
    const { exitCode, signalCode } = this.#child;
    if (exitCode === 0) return;
    if (this.seed === undefined) throw new Error(`worlds cannot be run: ${this.#stderr}`);
    const why = /^\w*Error.*|^.*Error: .*$/m.exec(this.#stderr)?.[0] ?? `${exitCode ?? signalCode}`;
    yield { seed: this.seed, violations: [this.#isStuck ? "the world never ends" : `it crashes: ${why}`] };
  }

  /** The process works on no world, and waits. */
  rest(): void {
    clearTimeout(this.#watch);
  }

  kill(): void {
    clearTimeout(this.#watch);
    this.#child.kill("SIGKILL");
  }

  #expectWithin(ms: number): void {
    clearTimeout(this.#watch);
    this.#watch = setTimeout(() => {
      this.#isStuck = true;
      this.#child.kill("SIGKILL");
    }, ms);
  }
}

/** The tree as it is. */
class Reference {
  readonly #folder: string;
  readonly #known = new Map<number, Promise<readonly string[]>>();
  /** One question at a time. */
  #last: Promise<unknown> = Promise.resolve();
  #explorer: { readonly process: Explorer; readonly reports: ReturnType<Explorer["reports"]> } | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  violationsOf(seed: number): Promise<readonly string[]> {
    const known = this.#known.get(seed);
    if (known !== undefined) return known;
    const answer = this.#last.then(() => this.#ask(seed));
    this.#known.set(seed, answer);
    this.#last = answer.catch(() => {});
    return answer;
  }

  close(): void {
    this.#explorer?.process.kill();
  }

  async #ask(seed: number): Promise<readonly string[]> {
    this.#explorer ??= this.#start();
    const { process, reports } = this.#explorer;
    process.ask(seed);
    const { value } = await reports.next();
    process.rest();
    if (value === undefined) throw new Error("the process of the unchanged tree has ended");
    // It has crashed, or was stuck.
    if (process.hasEnded) this.#explorer = undefined;
    return value.violations;
  }

  #start() {
    const process = new Explorer(this.#folder, ["--check"]);
    return { process, reports: process.reports() };
  }
}
