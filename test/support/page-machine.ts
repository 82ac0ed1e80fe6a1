/**
 * A machine on which the commands of a page are run, block by block, in a real shell. It has a simulated service, a
 * configuration and folders of its own. `inlet` is a small program that has the real command run in this process: a start
 * of its own would cost each one a third of a second.
 */
import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, onTestFinished } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { SUPPLIER } from "../../simulator/demo.ts";
import type { Scenario } from "../../simulator/scenario.ts";
import type { Simulator } from "../../simulator/simulator.ts";
import { asFault, describeFault } from "../../src/base/faults.ts";
import { EXIT_CODES, type Outcome } from "../../src/cli/command.ts";
import { type RunningCommand, runCommandHere, startCommandHere } from "./command.ts";
import { essentialProgram, installProgram } from "./debian.ts";
import { type Finished, makeFolder, runCommand } from "./program.ts";
import { freePort } from "./redis-server.ts";
import { ROOT } from "./root.ts";
import { openTestSimulator } from "./service.ts";

export interface PageMachine {
  readonly simulator: Simulator;
  /** Stands for the root of the file system. */
  readonly root: string;
  /** Runs a block as a reader would, after the ones before it. Its output; throws where a command fails. */
  /** `expected`: the exit code of the first command that fails. */
  run(script: string, expected?: number): Promise<string>;
  /** Calls the command without a shell. What it printed; throws what it throws. */
  call(...args: string[]): Promise<string>;
}

export interface PageOptions {
  readonly scenario: Scenario;
  /** The configuration at `/etc/inlet/inlet.yaml`; `undefined`: there is none yet. */
  configuration(simulator: Simulator, root: string): object | undefined;
  /** The transfer that `TRACKING-ID` and `TRANSFER-ID` name, and its password. */
  readonly meant: { readonly trackingId: string; readonly password: string };
  readonly usesCurl: boolean;
  /** The answer to a question of the command, by its name. */
  readonly typed: Readonly<Record<string, (simulator: Simulator) => string | undefined>>;
}

/** Outcomes besides success: the transfers of a page show what needs a person, and a page may have no daemon. */
const EXPECTED: Readonly<Record<string, readonly Outcome[]>> = {
  init: ["attention"],
  once: ["attention"],
  status: ["attention", "unreachable"],
};

/** Commands that run until they are stopped, and what they print when they are ready. */
const UNTIL_STOPPED: Readonly<Record<string, string>> = { run: '"msg":"ready"', simulate: '"clientId"' };

interface Call {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

export async function openPageMachine(options: PageOptions): Promise<PageMachine> {
  const root = await makeFolder();
  const simulator = await openTestSimulator(options.scenario);
  const [page, other] = [await freePort(), await freePort()];
  const configuration = options.configuration(simulator, root);
  await furnish(root, simulator, configuration, options.usesCurl);
  const running: RunningCommand[] = [];
  const socket = join(root, "socket");
  listen(socket, (call) => perform(call, options, simulator, running));
  const env = {
    PATH: join(root, "bin"),
    HOME: join(root, "home"),
    PAGE_SOCKET: socket,
    STATE_DIRECTORY: join(root, "var/lib/inlet"),
    ...(configuration === undefined ? {} : { INLET_CONFIG: join(root, "etc/inlet/inlet.yaml") }),
    INLET_HTTP__LISTEN: `127.0.0.1:${page}`,
    INLET_LIMITS__MINFREESPACE: "1KiB",
    TOKEN,
    INLET_PASSWORD: options.meant.password,
  };
  /** What pages name, and what it is here. */
  const stands: Readonly<Record<string, string>> = {
    "/etc/": `${root}/etc/`,
    "/srv/": `${root}/srv/`,
    "/usr/local/share/": `${root}/usr/local/share/`,
    "https://transfer.example.com": simulator.url,
    "127.0.0.1:8460": `127.0.0.1:${page}`,
    "8470": String(other),
    "CLIENT-ID": simulator.clientId,
    "TRACKING-ID": options.meant.trackingId,
    "TRANSFER-ID": transferIdOf(simulator, options.meant.trackingId),
  };
  const run = async (script: string, expected = 0) => {
    const here = Object.entries(stands).reduce((all, [there, own]) => all.replaceAll(there, own), script);
    // What a block exports, and where it goes, counts for the next one.
    const whole = `. "$HOME/.session"\nset -eu\n${here}\n{ export -p; echo "cd '$PWD'"; } > "$HOME/.session"`;
    const { exitCode, stdout, stderr } = await runCommand("/bin/sh", ["-c", whole], {
      env,
      cwd: join(root, "home"),
    });
    if (exitCode !== expected) throw new Error(`exit code ${exitCode}\n${here}\n${stdout}\n${stderr}`);
    return stdout;
  };
  const call = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await perform({ args, cwd: root, env }, options, simulator, running);
    if (exitCode !== 0) throw new Error(stderr);
    return stdout;
  };
  return { simulator, root, run, call };
}

function transferIdOf(simulator: Simulator, trackingId: string): string {
  const transfer = simulator.transfers().find((it) => it.trackingId === trackingId);
  return transfer?.recipients[0]?.transferId ?? "";
}

/** What signs in at the console. */
export const TOKEN = "a-long-token-that-is-hard-to-guess";

async function furnish(
  root: string,
  { clientId }: Simulator,
  configuration: object | undefined,
  usesCurl: boolean,
): Promise<void> {
  const home = join(root, "home");
  for (const folder of [
    "bin",
    "srv/inbox",
    "etc/inlet",
    "etc/bash_completion.d",
    "home/.config/fish/completions",
  ]) {
    await mkdir(join(root, folder), { recursive: true });
  }
  await mkdir(join(root, "usr/local/share/zsh/site-functions"), { recursive: true });
  await writeFile(join(home, ".session"), "");
  // Pages begin in a checkout.
  for (const name of ["config", "test"]) await symlink(join(ROOT, name), join(home, name));
  for (const [name, script] of Object.entries(PROGRAMS)) {
    await writeFile(join(root, "bin", name), script);
    await chmod(join(root, "bin", name), 0o755);
  }
  for (const name of BORROWED) await symlink(essentialProgram(name), join(root, "bin", name));
  if (usesCurl) await symlink(await installProgram("curl", "curl"), join(root, "bin/curl"));
  const secrets = { "client-id": clientId, supplier: SUPPLIER.password };
  for (const [name, secret] of Object.entries(secrets)) {
    await writeFile(join(root, "etc/inlet", name), secret, { mode: 0o600 });
  }
  if (configuration === undefined) return;
  await writeFile(join(root, "etc/inlet/inlet.yaml"), JSON.stringify(configuration), { mode: 0o600 });
}

/** The other programs that pages may use: a page that uses another one could change this machine. */
const BORROWED = ["cat", "chmod", "env", "find", "mkdir", "mktemp"];

/** npm installs, tests and measures: here it only has to know the script. */
const PROGRAMS: Readonly<Record<string, string>> = {
  inlet: `#!/bin/sh
exec '${process.execPath}' "$HOME/../bin/inlet.cjs" "$@"
`,
  "inlet.cjs": `const call = { args: process.argv.slice(2), cwd: process.cwd(), env: process.env };
require("node:http").request({ socketPath: process.env.PAGE_SOCKET, method: "POST" }, async (response) => {
  const { exitCode, stdout, stderr } = JSON.parse(Buffer.concat(await response.toArray()));
  process.stdout.write(stdout);
  process.stderr.write(stderr);
  process.exitCode = exitCode;
}).end(JSON.stringify(call));
`,
  npx: `#!/bin/sh
program=$1
shift
case $program in
  inlet) exec inlet "$@" ;;
  *) exit 1 ;;
esac
`,
  npm: `#!/bin/sh
case "$1 $2" in
  "ci ") ;;
  test\\ *) for word; do case $word in test/*) test -e "$word" ;; esac; done ;;
  run\\ *) case " ${Object.keys(packageJson.scripts).join(" ")} " in *" $2 "*) ;; *) exit 1 ;; esac ;;
  *) exit 1 ;;
esac
`,
};

function listen(path: string, answer: (call: Call) => Promise<Finished>): void {
  const server = createHttpServer(async (request, response) => {
    response.end(JSON.stringify(await answer(JSON.parse(await text(request)) as Call)));
  }).listen(path);
  onTestFinished(() => void server.close());
}

async function perform(
  call: Call,
  { typed }: PageOptions,
  simulator: Simulator,
  running: RunningCommand[],
): Promise<Finished> {
  const [name = ""] = call.args;
  const ready = UNTIL_STOPPED[name];
  if (ready !== undefined) return start(call, ready, running);
  // A daemon and a single run exclude each other: a reader would have stopped the daemon.
  if (name === "once") for (const each of running.splice(0)) await each.stop();
  const before = process.cwd();
  process.chdir(call.cwd);
  try {
    const input = answers(() => typed[name]?.(simulator));
    const ended = await runCommandHere(call.args, call.env, input);
    const isExpected = EXPECTED[name]?.some((outcome) => EXIT_CODES[outcome].code === ended.exitCode);
    return isExpected ? { ...ended, exitCode: 0 } : ended;
  } finally {
    process.chdir(before);
  }
}

/** A mailed code comes after it was asked for. */
async function* answers(typed: () => string | undefined): AsyncGenerator<Buffer> {
  for (let tries = 0; tries < 100; tries++) {
    const answer = typed();
    if (answer !== undefined) return yield Buffer.from(answer);
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** Returns when it is ready. */
async function start({ args, env }: Call, ready: string, running: RunningCommand[]): Promise<Finished> {
  const started = startCommandHere(args, env);
  running.push(started);
  let failure: string | undefined;
  started.ended.then(
    () => (failure = ""),
    (error: unknown) => (failure = describeFault(asFault(error))),
  );
  await expect.poll(() => failure !== undefined || started.logged().includes(ready)).toBe(true);
  return { exitCode: failure === undefined ? 0 : 1, stdout: started.logged(), stderr: failure ?? "" };
}
