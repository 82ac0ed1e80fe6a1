/** I5 no escape: what Inlet trusts belongs to root or to its own user, and no other user may change it. */
import { chmod, chown, mkdir, readdir, readFile, rename, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { startDaemon } from "../support/daemon.ts";
import { install, mailboxKeys } from "../support/installation.ts";
import { openMailbox } from "../support/one-mailbox.ts";
import { LAUNCHER, makeFolder, runCommand, runProgram } from "../support/program.ts";
import { MAILBOX, PASSWORD } from "../support/settings.ts";

const [STRANGER, ALONE] = [16_000, 15_000];
/** No name is known for this group, so its members are not known either. */
const GROUP = 17_001;

/** An installation that has run once, with a secret in a file. */
async function installWithSecret() {
  const installed = await install();
  const { folder, config, inbox, state, rewrite } = installed;
  await mkdir(join(folder, "secrets"), { mode: 0o700 });
  const secret = join(folder, "secrets/supplier");
  await writeFile(secret, PASSWORD, { mode: 0o600 });
  await mkdir(join(folder, "etc"), { mode: 0o700 });
  await rewrite({
    mailboxes: [{ ...mailboxKeys(MAILBOX), passwords: [{ sender: "*", password: { file: secret } }] }],
  });
  const moved = join(folder, "etc/inlet.yaml");
  await rename(config, moved);
  expect(await once(moved)).toMatchObject({ exitCode: 0 });
  const work = join(inbox, ".inlet");
  const paths = { config: moved, secret, state, work, tokens: join(state, "tokens") };
  return { ...paths, inbox, "state's folder": folder, "config's folder": join(folder, "etc") };
}

type Installed = Awaited<ReturnType<typeof installWithSecret>>;

function once(config: string) {
  return runProgram(["once", "--config", config]);
}

async function expectRefusal(installed: Installed, said: string, remedy: string): Promise<void> {
  const { exitCode, stderr } = await once(installed.config);
  expect([exitCode, stderr]).toEqual([5, expect.stringContaining(said)]);
  expect(stderr).toContain(remedy);
  const doctor = await runProgram(["doctor", "--config", installed.config]);
  // For the doctor, who owns the state folder is the daemon's user.
  const isOwned = said.startsWith(`${installed.state} belongs`);
  const found = isOwned ? `sudo -u '#${STRANGER}' inlet doctor` : remedy;
  expect([doctor.exitCode, doctor.stdout]).toEqual([isOwned ? 2 : 5, expect.stringContaining(found)]);
  expect(await runCommand("sh", ["-c", remedy])).toMatchObject({ exitCode: 0 });
  expect(await once(installed.config)).toMatchObject({
    exitCode: 0,
    stderr: expect.not.stringContaining(said),
  });
}

describe("Inlet does not start, and names the command that mends it,", () => {
  test.each([
    ["config", 0o602, "chmod o-w"],
    ["config's folder", 0o703, "chmod +t"],
    ["secret", 0o602, "chmod o-w"],
    ["state", 0o703, "chmod o-w"],
    ["state's folder", 0o707, "chmod +t"],
    ["tokens", 0o703, "chmod o-w"],
    ["work", 0o707, "chmod o-w"],
    ["inbox", 0o777, "chmod +t"],
  ] as const)("if every user may write: %s with mode %o", async (name, mode, remedy) => {
    const installed = await installWithSecret();
    await chmod(installed[name], mode);
    await expectRefusal(
      installed,
      `every user may write to ${installed[name]}`,
      `${remedy} ${installed[name]}`,
    );
  });

  test.each(["config", "secret", "state", "tokens", "work"] as const)(
    "if another user owns: %s",
    {
      tags: ["system"],
    },
    async (name) => {
      const installed = await installWithSecret();
      await chown(installed[name], STRANGER, STRANGER);
      const said = `${installed[name]} belongs to user ${STRANGER}`;
      const all = name === "config" || name === "secret" ? "" : "-R ";
      await expectRefusal(installed, said, `chown ${all}root ${installed[name]}`);
    },
  );

  test("and says all at once", async () => {
    const { config, secret, state } = await installWithSecret();
    await chmod(secret, 0o606);
    await chmod(state, 0o707);
    const { exitCode, stderr } = await once(config);
    expect(exitCode).toBe(5);
    for (const path of [secret, state]) expect(stderr).toContain(`chmod o-w ${path}`);
  });
});

test("the sticky bit lets others write above what Inlet trusts", async () => {
  const { config, inbox, state } = await installWithSecret();
  for (const folder of [inbox, dirname(state), dirname(config)]) await chmod(folder, 0o1777);
  expect(await once(config)).toMatchObject({ exitCode: 0, stderr: expect.not.stringContaining("may write") });
});

test("a changed configuration with a secret that every user may write is not put in force", async () => {
  const { settings } = await openMailbox();
  const daemon = startDaemon(settings);
  await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
  const secret = join(await makeFolder(), "secret");
  await writeFile(secret, PASSWORD, { mode: 0o600 });
  await chmod(secret, 0o606);
  const reload = daemon.reload({ ...settings, files: [secret] });
  await expect(reload).rejects.toMatchObject({ code: "FILES_UNPROTECTED" });
});

describe("a group that may write", () => {
  test("is a problem that names the group, as long as it lasts", { tags: ["system"] }, async () => {
    const { settings } = await openMailbox();
    const first = startDaemon(settings);
    await expect.poll(() => first.stateOf("t1")).toBe("delivered");
    await first.stop();
    const tokens = join(settings.state, "tokens");
    await chown(tokens, 0, GROUP);
    await chmod(tokens, 0o770);
    const daemon = startDaemon(settings);
    const exposed = `FILES_EXPOSED: the group ${GROUP} may write to ${tokens}: chmod g-w ${tokens}`;
    await expect.poll(() => daemon.reports).toEqual([exposed]);
    await chmod(tokens, 0o700);
    await daemon.reload({ ...settings });
    await expect.poll(() => daemon.reports).toEqual([exposed, "not exposed"]);
  });

  // As root: a user who is alone in its group is no problem.
  test("of an inbox above the work folder is one too", { tags: ["system"] }, async () => {
    const { settings } = await openMailbox();
    await mkdir(settings.inbox, { mode: 0o700 });
    await chmod(settings.inbox, 0o770);
    const daemon = startDaemon(settings);
    const said = `the group root may write to ${settings.inbox}: chmod +t ${settings.inbox}`;
    await expect.poll(() => daemon.reports).toEqual([`FILES_EXPOSED: ${said}`]);
  });

  test("is no problem if Inlet's user is alone in it, as with the volumes of Kubernetes", {
    tags: ["system"],
  }, async () => {
    const { config, folder, inbox, state, rewrite } = await install();
    await writeFile(join(folder, "passwd"), `alone:x:${ALONE}:${ALONE}::/:/bin/sh\n`);
    await writeFile(join(folder, "group"), `alone:x:${ALONE}:\n`);
    await writeFile(join(folder, "shared"), `alone:x:${ALONE}:emma,anna\n`);
    await chmod(folder, 0o755);
    // With fsGroup, root owns the volumes, and the group may write.
    for (const path of [state, inbox]) {
      await mkdir(path);
      await chown(path, 0, ALONE);
      await chmod(path, 0o2775);
    }
    const secrets = join(folder, "secrets");
    const password = { file: join(secrets, "supplier") };
    const received = join(inbox, "received");
    await rewrite({
      inbox: received,
      mailboxes: [{ ...mailboxKeys(MAILBOX), passwords: [{ sender: "*", password }] }],
    });
    await mountAsKubernetes(secrets, 0o1777, "supplier", PASSWORD);
    const mounted = join(folder, "etc");
    await mountAsKubernetes(mounted, 0o777, "inlet.yaml", await readFile(config));
    const script =
      'mount --bind "$1/passwd" /etc/passwd && mount --bind "$1/$2" /etc/group && shift 2 && exec setpriv "$@"';
    const who = ["--reuid", String(ALONE), "--regid", String(ALONE), "--clear-groups"];
    const command = [...who, process.execPath, LAUNCHER, "once", "--config", join(mounted, "inlet.yaml")];
    const run = (group: string) =>
      runCommand("unshare", ["--mount", "sh", "-c", script, "sh", folder, group, ...command]);
    expect(await run("group")).toMatchObject({
      exitCode: 0,
      stderr: expect.not.stringContaining("may write"),
    });
    expect(await readdir(join(received, MAILBOX, "anna@supplier.example"))).toEqual(["t1"]);
    const { exitCode, stderr } = await run("shared");
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining(`the group alone may write to ${state}`)]);
  });
});

/** A ConfigMap or Secret: every user may write the folder, and the file is behind links to a folder of root. */
async function mountAsKubernetes(folder: string, mode: number, name: string, content: string | Buffer) {
  const version = "..2026_03_01";
  await mkdir(join(folder, version), { recursive: true });
  const file = join(folder, version, name);
  await writeFile(file, content);
  await chmod(file, 0o440);
  await chown(file, 0, ALONE);
  await symlink(version, join(folder, "..data"));
  await symlink(join("..data", name), join(folder, name));
  await chmod(folder, mode);
}

describe("an owner that cannot be seen", { tags: ["system"] }, () => {
  test("in a user namespace is a problem, and Inlet starts", async () => {
    const { config } = await install();
    await chown(config, STRANGER, STRANGER);
    await chmod(config, 0o644);
    const own = ["--user", "--map-root-user", process.execPath, LAUNCHER, "once", "--config", config];
    const { exitCode, stderr } = await runCommand("unshare", own);
    expect([exitCode, stderr]).toEqual([
      0,
      expect.stringContaining(`the owner of ${config} cannot be seen from here`),
    ]);
  });

  test("of a file that is mounted alone, as Compose does, is a problem, and Inlet starts", async () => {
    const { config, folder } = await install();
    const host = join(folder, "host.yaml");
    await rename(config, host);
    await writeFile(config, "");
    await chown(host, STRANGER, STRANGER);
    const script = 'mount --bind "$1" "$2" && exec "$3" "$4" once --config "$2"';
    const args = ["sh", host, config, process.execPath, LAUNCHER];
    const { exitCode, stderr } = await runCommand("unshare", ["--mount", "sh", "-c", script, ...args]);
    expect([exitCode, stderr]).toEqual([
      0,
      expect.stringContaining(`the owner of ${config} cannot be seen from here`),
    ]);
  });
});
