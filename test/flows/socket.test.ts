/** A user who may not use the folders reaches the daemon through its socket, and gets the same answers. */
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { install, mailboxKeys } from "../support/installation.ts";
import { makeGroupFolder, runProgram, startProgram } from "../support/program.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const OTHER_USER = 65534;
const WRONG_SUM = [{ name: "a.txt", text: "Hello", csvChecksum: "wrong" } as const];
const SENDER = "anna@supplier.example";

test("the same commands have the same answers through the folders and through the socket", {
  tags: ["system"],
}, async () => {
  const path = join(await makeGroupFolder(OTHER_USER), "console.sock");
  const { config, folder } = await install(
    {
      transfers: [
        transferPlan({ trackingId: "t1", files: WRONG_SUM }),
        transferPlan({ trackingId: "t2", password: "right" }),
        transferPlan({ trackingId: "t3" }),
      ],
    },
    {
      http: { listen: `unix:${path}`, actions: true },
      mailboxes: [{ ...mailboxKeys(MAILBOX), passwordAttempts: 4 }],
    },
  );
  startProgram(["run", "--config", config]);
  const inlet = async (args: readonly string[], input: string, user?: number) => {
    const options = user === undefined ? { input } : { input, user };
    const { exitCode, stdout, stderr } = await runProgram([...args, "--config", config], options);
    return { exitCode, stdout, stderr };
  };
  const list = async () => (await inlet(["list"], "")).stdout;
  for (const state of [/quarantined.*t1/, /waiting.*t2/, /delivered.*t3/])
    await expect.poll(list).toMatch(state);
  await Promise.all([chmod(folder, 0o755), chmod(config, 0o644), chmod(join(folder, "inbox"), 0o755)]);
  await writeFile(join(folder, "inbox/.inlet/notes/damaged.json"), "{");

  const ways = async (args: string, input = "") => {
    const words = args.split(" ");
    const local = await inlet(words, input);
    return { local, remote: await inlet(words, input, OTHER_USER) };
  };
  const same = async (args: string, exitCode: number, input = "") => {
    const { local, remote } = await ways(args, input);
    expect({ args, ...remote }).toEqual({ args, ...local });
    expect({ args, exitCode: local.exitCode }).toEqual({ args, exitCode });
  };

  await same("list", 0);
  await same("list --json --limit 20000", 0);
  await same("list --state waiting --reason PASSWORD --json", 0);
  await same(`list --mailbox ${MAILBOX.toUpperCase()}`, 0);
  await same("list --mailbox example", 0);
  await same("show t1", 0);
  await same("show t1 --json", 0);
  await same(`show t2 --mailbox ${MAILBOX.toUpperCase()}`, 0);
  await same("show t2 --mailbox other@example.com", 2);
  await same("show t9", 2);
  await same("history", 0);
  await same("history --changes --json --limit 20000", 0);
  await same(`history --sender ${SENDER.toUpperCase()} --since 1d`, 0);
  await same("history --sender anna", 0);
  await same("history --state quarantined --until 1d", 0);
  await same("poll", 0);
  await same(`poll ${MAILBOX} --json`, 0);
  await same("poll --no-wait", 0);
  await same("pause nobody@example.com", 2);
  await same("resume", 0);
  expect(await inlet(["pause"], "", OTHER_USER)).toMatchObject({ exitCode: 0 });
  await same("pause", 0);
  await same("poll", 2);
  expect(await inlet(["resume", MAILBOX], "", OTHER_USER)).toMatchObject({ exitCode: 0 });
  await same("release t2 --yes", 2);
  await same("release --all --sender *nobody --yes", 0);
  await same("release --all --state waiting --yes", 0);
  await same("redeliver --all --reason CHECKSUM_MISMATCH --yes", 0);
  await same("password t1", 2, "right");
  await same("password --once-more t2", 2);
  await same("password --once-more --all", 0);
  await same("password --once-more --all --mailbox *@EXAMPLE.com", 0);
  await same("password --once-more --all --mailbox typo", 2);
  await same("discard t9 --yes", 2);
  await same("retry t1 --timeout 1h", 3);
  await same("retry t1 --no-wait", 0);
  await expect.poll(list).toMatch(/quarantined.*t1/);

  const wrong = await inlet(["password", "t2", "--timeout", "20m"], "wrong", OTHER_USER);
  expect([wrong.exitCode, wrong.stderr]).toEqual([3, expect.stringContaining("The password was refused.")]);
  await same("password t2 --json", 3, "wrong");
  // Each command was recorded with its user.
  const { local, remote } = await ways("history --actions --json --limit 20000");
  expect(remote).toEqual(local);
  expect(JSON.parse(local.stdout).map(({ act }: { act: string }) => act)).toContain("retry");
});
