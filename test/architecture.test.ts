/** Holds the layout of the house: who may import whom, who may read the environment, and how long a file may be. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { describe, expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "..");
/** `src` is the product. The simulator is a program of its own, and a room like the others. */
const SOURCES = ["src", "simulator"];
/** A protocol stays in one file. */
const LONGEST_FILE = 400;

const CAPABILITIES = [
  "service",
  "config",
  "queue",
  "passwords",
  "ledger",
  "inbox",
  "handoff",
  "notify",
  "observe",
  "host",
];
const FLOWS = ["mailbox", "transfer"];

/** What each room may import besides itself. Flows know capabilities by their ports alone. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  base: [],
  model: ["base"],
  ...Object.fromEntries(CAPABILITIES.map((room) => [room, ["base", "model"]])),
  ...Object.fromEntries(
    FLOWS.map((room) => [
      room,
      ["base", "model", ...CAPABILITIES.map((capability) => `${capability}/port.ts`)],
    ]),
  ),
  simulator: ["base", "model"],
  operate: ["base", "model", ...CAPABILITIES, ...FLOWS],
  console: ["base", "model", "operate"],
  daemon: ["base", "model", ...CAPABILITIES, ...FLOWS, "operate", "console"],
  "daemon.ts": ["base", "model", ...CAPABILITIES, ...FLOWS, "operate", "console", "daemon"],
  cli: ["base", "model", ...CAPABILITIES, ...FLOWS, "operate", "console", "daemon", "daemon.ts", "simulator"],
  "main.ts": ["base", "model", "config", "host", "cli"],
};

/** Packages that only one room may know. */
const HELD_BY: Readonly<Record<string, string>> = {
  undici: "(service/|base/(connection|joined-socket))",
  yazl: "simulator/",
  bullmq: "queue/bullmq",
  ioredis: "queue/bullmq",
  commander: "(cli/|main.ts)",
  nodemailer: "notify/",
};

/** Reads a whole file, a whole folder or a whole stream, however large it is, or parses a whole text. */
const UNBOUNDED =
  /\b(?:readFile|readFileSync|readdir|readdirSync|opendir|tryReadFile|readText|createReadStream|JSON\.parse|parseJson|parseAs)\(|\.(?:text|json|arrayBuffer)\(\)|\b(?:tryRead|disk\.read|disk\.list)\(/;

/** Why each file may do so: what it reads, and whose that is. Nothing of an inbox is here. */
const READS_WHOLE: Readonly<Record<string, string>> = {
  "base/disk.ts": "passes the calls on",
  "base/durable.ts": "the work folder and staged folders",
  "base/files.ts": "passes the calls on",
  "base/foreign-files.ts": "the door to the files of an inbox: each read has a bound",
  "base/json.ts": "a text that its reader has bounded",
  "base/long-text.ts": "an entry and the rest of a JSON text, each within the caller's bound",
  "base/process.ts": "/proc",
  "base/sums.ts": "a staged folder",
  "base/tail.ts": "the journal",
  "base/version.ts": "our package.json",
  "config/": "the configuration and its secrets",
  "cli/":
    "what the person who runs the command names, and our own package; verify.ts hashes files piece by piece",
  "console/actions.ts": "a field of a form, whose body is bounded",
  "console/api.ts": "our own assets",
  "console/server.ts": "our own assets",
  "daemon/live-settings.ts": "our own settings",
  "daemon/workspace.ts": "the machine's id",
  "handoff/orphans.ts": "/proc",
  "handoff/outbox.ts": "the work folder",
  "handoff/peek.ts": "the work folder",
  "host/": "the state folder, the machine, and the configuration of systemd",
  "inbox/exposure.ts": "/proc",
  "inbox/members.ts": "the work folder",
  "inbox/mounts.ts": "/proc",
  "inbox/probe.ts": "folders that the probe has made",
  "inbox/reach.ts": "a folder that the trial has made",
  "inbox/removal.ts": "the staging folder",
  "inbox/work-folder.ts": "the work folder",
  "ledger/": "the work folder",
  "mailbox/expected.ts": "the state folder",
  "queue/turns.ts": "the state folder",
  "model/outbox.ts": "an entry of the work folder",
  "model/placement.ts": "a placement of the work folder",
  "notify/": "the journal and the state folder; answers are bounded where they are read",
  "observe/log.ts": "a line of our own log",
  "operate/": "the work folder and our own daemon",
  "passwords/": "the state folder",
  "service/": "answers that `service/bodies.ts` has bounded",
  "transfer/": "staged folders",
};

/** Reads deliveries in an inbox, though its room may read its own folders whole. */
const READS_INBOX = ["handoff/delivery.ts", "handoff/folder-lifecycle.ts", "ledger/contents.ts"];

interface SourceFile {
  /** `base/clock.ts` for `src/base/clock.ts`; `simulator/open.ts`. */
  readonly path: string;
  readonly text: string;
  /** Paths in the same form. */
  readonly localImports: readonly string[];
  readonly packages: readonly string[];
}

const files: readonly SourceFile[] = SOURCES.flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).map((path) => join(folder, path)),
)
  .filter((path) => path.endsWith(".ts"))
  .toSorted()
  .map((path) => {
    const text = readFileSync(join(ROOT, path), "utf8");
    const imports = [...text.matchAll(/(?:^|\s)(?:from|import)\s*\(?\s*"([^"]+)"/g)].map(
      ([, name]) => name ?? "",
    );
    const isLocal = (name: string) => name.startsWith(".");
    return {
      path: withoutSource(path),
      text,
      localImports: imports.filter(isLocal).map((name) => withoutSource(join(dirname(path), name))),
      packages: imports.filter((name) => !isLocal(name)),
    };
  });

describe("the layout of the house", () => {
  test("has a place for every file", () => {
    const rooms = new Set(files.map((file) => roomOf(file.path)));
    expect([...rooms].filter((room) => !Object.hasOwn(MAY_IMPORT, room))).toEqual([]);
  });

  test("lets imports point one way only", () => {
    const wrong = files.flatMap((file) =>
      file.localImports.flatMap((target) => {
        const allowed = [roomOf(file.path), ...(MAY_IMPORT[roomOf(file.path)] ?? [])];
        return allowed.includes(roomOf(target)) || allowed.includes(target)
          ? []
          : [`${file.path} imports ${target}`];
      }),
    );
    expect(wrong).toEqual([]);
  });

  test("has no circle of imports", () => {
    const targets = new Map(files.map((file) => [file.path, file.localImports]));
    expect(
      files.map((file) => findCircle(file.path, targets, [])).filter((circle) => circle !== undefined),
    ).toEqual([]);
  });

  test("keeps each foreign package in its room", () => {
    const wrong = files.flatMap((file) =>
      file.packages.flatMap((name) => {
        const room = HELD_BY[name.split("/")[0] ?? ""];
        return room === undefined || new RegExp(`^${room}`).test(file.path)
          ? []
          : [`${file.path} imports ${name}`];
      }),
    );
    expect(wrong).toEqual([]);
  });

  test("lets only config and main read the environment, and only main end the process", () => {
    const reads = files.filter(
      ({ path, text }) => /process\.env/.test(text) && !/^(config\/|main\.ts)/.test(path),
    );
    const ends = files.filter(({ path, text }) => /process\.exit/.test(text) && path !== "main.ts");
    expect([...reads, ...ends].map((file) => file.path)).toEqual([]);
  });

  test("I4 no leaks: no command can send a token to a daemon, because none knows how", () => {
    const rooms = /^(operate|cli|host)\//;
    const senders = files.filter(
      ({ path, text }) => rooms.test(path) && /authorization:|bearer /i.test(text),
    );
    expect(senders.map((file) => file.path)).toEqual([]);
  });

  test(`has no file over ${LONGEST_FILE} lines`, () => {
    const long = files.map(({ path, text }) => ({ path, lines: text.split("\n").length - 1 }));
    expect(long.filter(({ lines }) => lines > LONGEST_FILE)).toEqual([]);
  });

  test("says at each error that is dropped why nothing is lost", () => {
    const silent = files.flatMap(({ path, text }) => {
      const lines = text.split("\n");
      const at = lines.flatMap((line, index) => (dropsError(line, lines[index + 1] ?? "") ? [index] : []));
      return at
        .filter((index) => !isComment(lines[index - 1] ?? ""))
        .map((index) => `${path}:${index + 1}: ${lines[index]?.trim()}`);
    });
    expect(silent).toEqual([]);
  });

  test("reads whole only what is no stranger's: a file of an inbox has a bound, in base/foreign-files.ts", () => {
    const reasonOf = (path: string) =>
      Object.keys(READS_WHOLE).find((known) => path.startsWith(known) && !READS_INBOX.includes(path));
    const readers = files.filter(({ path, text }) => !path.startsWith("simulator/") && UNBOUNDED.test(text));
    const undeclared = readers.filter(({ path }) => reasonOf(path) === undefined);
    expect(undeclared.map(({ path }) => path)).toEqual([]);
    // A reason that nothing needs would hide the next read.
    const used = new Set(readers.map(({ path }) => reasonOf(path)));
    expect(Object.keys(READS_WHOLE).filter((known) => !used.has(known))).toEqual([]);
  });

  test("names the kind of a stranger's file wherever it opens one", () => {
    // Only these open what may be a link or a pipe: with the flags that neither follow nor wait.
    const flagged = files.filter(({ text }) => text.includes("READ_PLAIN_FILE")).map(({ path }) => path);
    expect(flagged).toEqual([
      "base/files.ts",
      "base/foreign-files.ts",
      "base/sums.ts",
      "cli/verify.ts",
      "passwords/stored.ts",
    ]);
  });

  test("opens every file with a sentence that says what it is for", () => {
    expect(files.filter(({ text }) => !text.startsWith("/**")).map((file) => file.path)).toEqual([]);
  });
});

/** An empty `catch`, a rejection that becomes a value, or a handler that does nothing. */
function dropsError(line: string, next: string): boolean {
  const isEmptyCatch =
    /\bcatch \{\s*\}|\bcatch \{$/.test(line) && (line.endsWith("}") || /^\s*\}/.test(next));
  const isDroppedRejection = /\.catch\(\(\) =>(?! \{$)/.test(line);
  const isEmptyHandler = /\(\) => \{\}/.test(line) && !/(?:\.then\(| = )(?:async )?\(\) => \{\}/.test(line);
  return isEmptyCatch || isDroppedRejection || isEmptyHandler;
}

function isComment(line: string): boolean {
  return /^\s*\/\/ /.test(line);
}

/** The first folder, or the file itself where it stands in none. */
function roomOf(path: string): string {
  return path.split("/")[0] ?? path;
}

function withoutSource(path: string): string {
  return path.replace(/^src\//, "");
}

const acyclic = new Set<string>();

function findCircle(
  path: string,
  targets: ReadonlyMap<string, readonly string[]>,
  trail: readonly string[],
): string | undefined {
  if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path].join(" → ");
  if (acyclic.has(path)) return undefined;
  for (const target of targets.get(path) ?? []) {
    const circle = findCircle(target, targets, [...trail, path]);
    if (circle !== undefined) return circle;
  }
  acyclic.add(path);
  return undefined;
}
