/**
 * Every command in the pages works: each block of a shell is run, in the order of its page, on a machine of its own. The
 * blocks that are not run are listed here, each with the reason. Their transfers are those of `inlet demo`, and some more.
 */
import { readFileSync } from "node:fs";
import { chmod, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import {
  DEMO_MAILBOX,
  demoScenario,
  REVOKED_ID,
  SUPPLIER,
  WAITING_ID,
  WAITING_PASSWORD,
} from "../../simulator/demo.ts";
import type { Scenario } from "../../simulator/scenario.ts";
import type { Simulator } from "../../simulator/simulator.ts";
import { asFault, describeFault } from "../../src/base/faults.ts";
import { EXIT_CODES, type Outcome } from "../../src/cli/command.ts";
import { type RunningCommand, runCommandHere, startCommandHere } from "../support/command.ts";
import { essentialProgram, installProgram } from "../support/debian.ts";
import { type Block, blocksOf, PAGES } from "../support/pages.ts";
import { type Finished, makeFolder, runCommand } from "../support/program.ts";
import { freePort } from "../support/redis-server.ts";
import { ROOT } from "../support/root.ts";
import { openTestSimulator } from "../support/service.ts";

const VERSION = packageJson.version;

/** They run the blocks under a comment `<!-- run: NAME -->`, which they find by that name. */
const MARKED = ["systemd/service", "systemd/package", "flows/decrypt-transfer"]
  .map((name) => readFileSync(join(ROOT, `test/${name}.test.ts`), "utf8"))
  .join("\n");

/** Page → first line of a block → why it is not run here. */
const NOT_RUN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "docs/commands.md": {
    "sudo inlet doctor --unit inlet": "it needs systemd: test/systemd/service.test.ts does it",
    "sudo inlet verify-address orders@example.com --unit inlet":
      "it needs systemd: test/systemd/package.test.ts does it",
    "inlet poll orders@example.com": "it needs a daemon: test/flows/paused-mailboxes.test.ts polls with one",
    "inlet notify test": "it needs a mail server: test/flows/notify.test.ts runs it against one",
  },
  "docs/configuring.md": {
    "chgrp lab /srv/transfers/lab": "it needs the group: test/flows/groups.test.ts delivers to one",
  },
  "docs/consuming.md": {
    "seconds=$(printf %s \"$SIGNATURE\" | sed -n 's/^t=\\([0-9]*\\),v1=[0-9a-f]*$/\\1/p')":
      "test/unit/docs/consuming.test.ts runs it",
  },
  "docs/getting-started.md": {
    "npx inlet init": "it asks at a terminal: test/flows/init.test.ts answers",
  },
  "docs/installing.md": {
    [`npm install --global --prefix /opt/inlet ./inletd-${VERSION}.tgz`]:
      "it installs a package: test/flows/install.test.ts and test/systemd/service.test.ts do it",
    "npm install --global --prefix /opt/inlet ./inletd-NEW.tgz": "it installs a later package like this",
    "journalctl -u inlet -o cat": "it needs systemd: test/systemd/service.test.ts reads the log like this",
    "usermod --append --groups consumers NAME": "it changes the users of the machine",
    "install -d -o inlet -g inlet -m 750 /mnt/transfers":
      "it opens an editor: test/systemd/service.test.ts runs the unit with the drop-ins of the page",
    "systemctl stop inlet": "it needs systemd, and moves the records of a machine",
    "chown -R inlet: /etc/inlet/secrets": "it changes files of the machine",
    "systemctl disable --now inlet-once.timer": "it needs systemd: the timer begins with the opposite",
    "inlet init":
      "it asks at a terminal: test/flows/init.test.ts answers, and test/systemd/package.test.ts uses options",
    "inlet verify-address orders@example.com --unit inlet":
      "it needs systemd: test/systemd/package.test.ts does it",
    [`docker build --tag inlet:${VERSION} .`]: "test/image/image.test.ts builds the image, with podman",
    "docker compose -f config/compose.sidecar.yaml up --build --detach":
      "it needs a Docker engine: test/flows/containers.test.ts runs the configuration, and test/image/image.test.ts the command",
    "kubectl apply -f examples/kubernetes/one-pod.yaml":
      "it needs a cluster: test/flows/containers.test.ts runs the configuration and asks the probes",
    "kubectl port-forward deployment/inlet 8460":
      "it needs a cluster: test/flows/containers.test.ts opens the console as localhost",
    [`docker run --rm --entrypoint cat inlet:${VERSION} /opt/inlet/dist/sbom.cdx.json > sbom.cdx.json`]:
      "test/image/image.test.ts does it, with podman",
  },
  "docs/operating.md": {
    "usermod --append --groups inlet NAME": "it changes the users of the machine",
    "inlet notify test": "it needs a mail server: test/flows/notify.test.ts runs it against one",
    "systemctl reload inlet": "it needs systemd: test/systemd/service.test.ts does it",
    "journalctl -u inlet -p warning":
      "it needs systemd: test/systemd/service.test.ts reads the log like this",
  },
  "docs/recipes.md": {
    "install -m 755 examples/consumers/upload-transfer /usr/local/bin/":
      "it installs a script: test/flows/upload-transfer.test.ts runs it, with a configuration of its own",
    "install -m 755 examples/consumers/decrypt-transfer /usr/local/bin/":
      "it installs a script: test/flows/decrypt-transfer.test.ts runs it, with the configuration of the page",
    "install -m 755 examples/consumers/take-passwords /usr/local/bin/":
      "it installs a script: test/flows/take-passwords.test.ts runs it",
  },
  "docs/worlds.md": {
    "npm run explore -- --minutes 5": "it takes long: test/unit/world/worlds.test.ts runs worlds",
    "npm run explore -- --mutants": "it takes long: test/unit/world/mutations.test.ts applies every mutation",
  },
};

const TWO_WRONG_ID = "20260301-080700-twowrong";

const SCENARIO: Scenario = {
  transfers: [
    // The large one takes its time.
    ...(demoScenario.transfers ?? []).filter(({ trackingId }) => trackingId?.endsWith("onelarge") !== true),
    {
      from: "lab@clinic.example",
      to: [DEMO_MAILBOX],
      trackingId: TWO_WRONG_ID,
      files: [{ name: "a.csv", text: "1" }],
    },
    {
      from: SUPPLIER.sender.replace("*", "anna"),
      to: [DEMO_MAILBOX],
      trackingId: "20260301-080800-unwanted",
      password: SUPPLIER.password,
      files: [{ name: "a.csv", text: "1", csvChecksum: "wrong" }],
    },
  ],
};

const OPTIONS: Omit<PageOptions, "usesCurl"> = {
  scenario: SCENARIO,
  configuration: configure,
  meant: { trackingId: WAITING_ID, password: WAITING_PASSWORD },
  typed: {
    password: () => WAITING_PASSWORD,
    "verify-address": (simulator) => simulator.mails().at(-1)?.code,
  },
};

/** How a page differs: what is there before its first block, and what happens before a block that begins like this. */
interface Given {
  readonly options?: Partial<PageOptions>;
  first?(machine: PageMachine): Promise<unknown>;
  readonly before?: Readonly<Record<string, (machine: PageMachine) => Promise<unknown>>>;
  /** The exit code of a block that begins like this, where a person has to act afterwards. */
  readonly exits?: Readonly<Record<string, number>>;
}

const GIVEN: Readonly<Record<string, Given>> = {
  "docs/getting-started.md": { options: { configuration: () => undefined } },
  "docs/simulator.md": { options: { configuration: () => undefined } },
  // The commands of the reference stand for themselves, and need no daemon.
  "docs/commands.md": {
    first: (machine) => machine.call("once"),
    before: {
      "inlet discard": (machine) => letBeGone(machine),
      "inlet init": ({ root }) => rm(join(root, "etc/inlet/inlet.yaml")),
    },
  },
  "docs/operating.md": {
    options: { configuration: configureHandoff },
    first: letThingsHappen,
    before: { "inlet retry 20260301-080000": correctHandoff },
    // It is damaged at the service, too; and the hand-off of the other one fails until it is corrected.
    exits: { "inlet retry 20260301-080300": 3, "inlet redeliver 20260301-080000": 3 },
  },
};

describe.each(PAGES.filter((page) => shellBlocksOf(page).length > 0))("%s", (page) => {
  const blocks = shellBlocksOf(page);
  const isListed = ({ text }: Block) => NOT_RUN[page]?.[firstLineOf(text)] !== undefined;
  const run = blocks.filter((block) => block.mark === undefined && !isListed(block));

  const usesCurl = run.some(({ text }) => /\bcurl /.test(text));

  if (run.length > 0) {
    test("its commands work", { tags: usesCurl ? ["system"] : [] }, async () => {
      const { options, first, before = {}, exits = {} } = GIVEN[page] ?? {};
      const machine = await openPageMachine({ ...OPTIONS, ...options, usesCurl });
      await first?.(machine);
      for (const { text } of run) {
        const [, prepare] = Object.entries(before).find(([begin]) => text.startsWith(begin)) ?? [];
        await prepare?.(machine);
        const [, expected] = Object.entries(exits).find(([begin]) => text.startsWith(begin)) ?? [];
        await machine.run(text, expected);
        if (first === letThingsHappen) await untilSettled(machine);
      }
    });
  }

  test("every other command is run elsewhere, or has a reason", () => {
    for (const { mark } of blocks) if (mark !== undefined) expect(MARKED).toContain(`("${mark}")`);
    const firstLines = blocks.map(({ text }) => firstLineOf(text));
    expect(Object.keys(NOT_RUN[page] ?? {}).filter((line) => !firstLines.includes(line))).toEqual([]);
  });
});

function shellBlocksOf(page: string): Block[] {
  return blocksOf(page).filter(({ language }) => language === "sh");
}

function firstLineOf(text: string): string {
  return text.split("\n")[0] ?? "";
}

function configure({ url }: Simulator, root: string): object {
  const wrong = { trackingId: TWO_WRONG_ID, password: "Wrong-Password:1" };
  return {
    service: { baseUrl: url, clientId: { file: join(root, "etc/inlet/client-id") } },
    inbox: join(root, "srv/inbox"),
    mailboxes: [{ email: DEMO_MAILBOX, poll: "200ms", passwords: [wrong, SUPPLIER] }],
    http: { actions: true, token: TOKEN },
  };
}

/** Its command fails at first. */
function configureHandoff(simulator: Simulator, root: string): object {
  return { ...configure(simulator, root), handoff: { command: [join(root, "etc/inlet/command")] } };
}

async function correctHandoff({ root }: PageMachine): Promise<void> {
  await writeFile(join(root, "etc/inlet/command"), "#!/bin/sh\n");
}

/** A daemon runs, a sender revokes a transfer, and an operator supplies a wrong password. */
async function letThingsHappen(machine: PageMachine): Promise<void> {
  const { simulator, root, call } = machine;
  await writeFile(join(root, "etc/inlet/command"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  await call("run");
  await until(machine, REVOKED_ID, ({ state }) => state === "waiting");
  simulator.revoke(REVOKED_ID);
  await until(machine, TWO_WRONG_ID, ({ passwordsSpent }) => passwordsSpent === 1);
  await writeFile(join(root, "var/lib/inlet/passwords", TWO_WRONG_ID), "Wrong-Password:2");
  await until(machine, TWO_WRONG_ID, ({ passwordsSpent }) => passwordsSpent === 2);
  await until(machine, REVOKED_ID, ({ state }) => state === "gone");
}

async function letBeGone({ simulator, call }: PageMachine): Promise<void> {
  simulator.revoke(REVOKED_ID);
  // It is believed to be gone when the second poll does not list it.
  await call("once");
  await call("once");
}

/** What a block has begun is done before the next one. */
async function untilSettled({ call }: PageMachine): Promise<void> {
  const moving = ["discovered", "downloading", "delivering"];
  await expect.poll(async () => (await list(call)).filter(({ state }) => moving.includes(state))).toEqual([]);
}

async function until(
  { call }: PageMachine,
  trackingId: string,
  isSo: (listed: Listed) => boolean,
): Promise<void> {
  await expect
    .poll(async () => (await list(call)).some((it) => it.trackingId === trackingId && isSo(it)))
    .toBe(true);
}

interface Listed {
  readonly trackingId: string;
  readonly state: string;
  readonly passwordsSpent: number;
}

async function list(call: PageMachine["call"]): Promise<Listed[]> {
  const lines = (await call("list", "--json")).trim().split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Listed);
}

interface PageMachine {
  readonly simulator: Simulator;
  /** Stands for the root of the file system. */
  readonly root: string;
  /** Runs a block as a reader would, after the ones before it. Its output; throws where a command fails. */
  /** `expected`: the exit code of the first command that fails. */
  run(script: string, expected?: number): Promise<string>;
  /** Calls the command without a shell. What it printed; throws what it throws. */
  call(...args: string[]): Promise<string>;
}

interface PageOptions {
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

/**
 * A machine on which the commands of a page are run, block by block, in a real shell. It has a simulated service, a
 * configuration and folders of its own. `inlet` is a small program that has the real command run in this process: a start
 * of its own would cost each one a third of a second.
 */
async function openPageMachine(options: PageOptions): Promise<PageMachine> {
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
const TOKEN = "a-long-token-that-is-hard-to-guess";

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
