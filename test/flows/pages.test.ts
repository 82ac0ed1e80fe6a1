/**
 * Every command in the pages works: each block of a shell is run, in the order of its page, on a machine of its own. The
 * blocks that are not run are listed here, each with the reason. Their transfers are those of `inlet demo`, and some more.
 */
import { readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
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
import { openPageMachine, type PageMachine, type PageOptions, TOKEN } from "../support/page-machine.ts";
import { type Block, blocksOf, PAGES } from "../support/pages.ts";
import { ROOT } from "../support/root.ts";

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
