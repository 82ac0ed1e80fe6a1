// @module-tag system
/**
 * The share of docs/samba.md, with a real Samba on a port of this machine. Debian has no PowerShell: smbclient does what
 * take-transfers.ps1 does, in the same order.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, chown, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { installProgram } from "../support/debian.ts";
import { install } from "../support/installation.ts";
import { blocksOf } from "../support/pages.ts";
import { makeFolder, runCommand, runProgram, startCommand } from "../support/program.ts";
import { freePort } from "../support/redis-server.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

/** Exist on every Debian. The user is not root, the group is not the user's. */
const USER = "daemon";
const GROUP = "games";
const SENT = `${MAILBOX}/anna@supplier.example`;

beforeAll(async () => {
  await installProgram("smbd", "samba");
  await installProgram("smbclient", "smbclient");
});

test("a consumer on the share takes each folder by one rename, and reaches nothing of Inlet's own", async () => {
  const { share, smb, get, once: poll, config } = await prepare();
  // List: the work folder is not there, and every name is the one on the disk.
  const listed = namesIn(await smb("recurse; ls inbox/*"));
  expect(listed).not.toContain(".inlet");
  const folder = join(share, "inbox", SENT, "t1");
  for (const name of readdirSync(folder)) expect(listed).toContain(name);
  const names = readdirSync(folder);
  expect(names.filter((name) => /["?]/.test(name) || /^con(\.|$)/i.test(name))).toEqual([]);
  expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(5 + 2);
  // Case does not matter.
  expect(await smb(`ls INBOX/${SENT.toUpperCase()}/T1/TRANSFER.JSON`)).toContain("transfer.json");

  // Read the manifest, claim the folder by its id, read the files, and book it.
  const id = JSON.parse((await get(`inbox/${SENT}/t1/transfer.json`)).toString()).deliveryId as string;
  await smb("mkdir taken/claimed; mkdir taken/done");
  await smb(`rename inbox/${SENT}/t1 taken/claimed/${id}`);
  expect(await smb(`rename inbox/${SENT}/t1 taken/claimed/again`)).toContain("OBJECT_NAME_NOT_FOUND");
  const manifest = JSON.parse(readFileSync(join(share, "taken/claimed", id, "transfer.json"), "utf8"));
  for (const { name, sha256 } of manifest.files) {
    const bytes = await get(`taken/claimed/${id}/${name}`);
    expect(createHash("sha256").update(bytes).digest("hex"), name).toBe(sha256);
  }
  await smb(`rename taken/claimed/${id} taken/done/${id}`);
  // A name that is taken stays, and so does the folder that would replace it.
  expect(await smb(`rename inbox/${SENT}/t2 taken/done/${id}`)).toContain("OBJECT_NAME_COLLISION");
  expect(existsSync(join(share, "inbox", SENT, "t2/transfer.json"))).toBe(true);
  await poll();
  const { stdout } = await runProgram(["list", "--json", "--config", config]);
  const states = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(Object.fromEntries(states.map(({ trackingId, state }) => [trackingId, state]))).toEqual({
    t1: "picked-up",
    t2: "delivered",
  });

  // Inlet's own is out of reach.
  for (const [command, refusal] of [
    ["ls inbox/.inlet/*", /OBJECT_PATH_NOT_FOUND|OBJECT_NAME_NOT_FOUND|NO_SUCH_FILE/],
    ["rename inbox/.inlet taken/x", /NOT_FOUND|NO_SUCH_FILE/],
    ["mkdir inbox/.inlet/x", /NOT_FOUND|ACCESS_DENIED/],
    ["rename inbox taken/x", /ACCESS_DENIED/],
    ["rmdir inbox", /ACCESS_DENIED|NOT_EMPTY/],
    ["deltree inbox", /ACCESS_DENIED|NOT_EMPTY/],
    ["mkdir inbox/x", /ACCESS_DENIED/],
    [`rename inbox/${MAILBOX} taken/x`, /ACCESS_DENIED/],
  ] as const) {
    expect(await smb(command), command).toMatch(refusal);
    expect(existsSync(join(share, "inbox/.inlet/id")), command).toBe(true);
  }
});

/** Two deliveries in a share, and its server. */
async function prepare() {
  const folder = await makeFolder();
  await chmod(folder, 0o755);
  const share = join(folder, "transfers");
  const gid = await groupId();
  await mkdir(share, { mode: 0o755 });
  for (const [name, mode] of [
    ["inbox", 0o2750],
    ["taken", 0o2770],
  ] as const) {
    await mkdir(join(share, name));
    await chown(join(share, name), 0, gid);
    await chmod(join(share, name), mode);
  }
  const files = ["a.txt", "A.TXT", "CON", 'q"?.txt', "Größe.txt"].map((name) => ({ name, text: name }));
  const transfers = [transferPlan({ trackingId: "t1", files }), transferPlan({ trackingId: "t2" })];
  const handoff = { folderMode: "0770", fileMode: "0640" };
  const { config } = await install({ transfers }, { inbox: join(share, "inbox"), handoff });
  const poll = async () => {
    expect((await runProgram(["once", "--config", config])).exitCode).toBe(0);
  };
  await poll();
  const port = await startSamba(folder, share);
  const args = ["-p", String(port), "-U", `${USER}%secret`, "//127.0.0.1/transfers"];
  const smb = async (commands: string) => {
    const { stdout, stderr } = await runCommand("smbclient", [...args, "-c", commands]);
    return `${stdout}${stderr}`;
  };
  const get = async (path: string) => {
    const to = join(folder, "fetched");
    expect(await smb(`get "${path}" "${to}"`)).toContain("getting file");
    return readFileSync(to);
  };
  return { share, smb, get, config, once: poll };
}

async function groupId(): Promise<number> {
  return Number((await runCommand("getent", ["group", GROUP])).stdout.split(":")[2]);
}

/** The page's share with this machine's path, user and group. Everything that the server writes is in the folder. */
async function startSamba(folder: string, share: string): Promise<number> {
  const port = await freePort();
  const own = join(folder, "samba");
  await mkdir(own, { mode: 0o755 });
  const [section] = blocksOf("docs/samba.md").filter(({ language }) => language === "ini");
  const text = (section?.text ?? "")
    .replace("/srv/transfers", share)
    .replace("@consumers", USER)
    .replace("force group = inlet", `force group = ${GROUP}`);
  const folders = ["private dir", "lock directory", "state directory", "cache directory", "pid directory"];
  const global = [
    ...folders.map((name) => `${name} = ${own}`),
    `ncalrpc dir = ${own}/ncalrpc`,
    `log file = ${own}/log`,
    `smb ports = ${port}`,
    "interfaces = lo",
    "bind interfaces only = yes",
    "load printers = no",
    "disable spoolss = yes",
    "server role = standalone server",
    "server services = smb",
  ];
  const config = join(own, "smb.conf");
  await writeFile(config, `[global]\n${global.join("\n")}\n${text}`);
  const checked = await runCommand("testparm", ["-s", config]);
  expect(checked.exitCode).toBe(0);
  expect(checked.stderr).not.toMatch(/unknown|error|warning: the/i);
  for (const line of ["veto files = /.inlet/", `force group = ${GROUP}`])
    expect(checked.stdout).toContain(line);
  const added = await runCommand("smbpasswd", ["-c", config, "-a", "-s", USER], {
    input: "secret\nsecret\n",
  });
  expect(added.exitCode, added.stderr).toBe(0);
  // Without `--daemon` it would serve its standard input. It gets a process group of its own, which it ends at SIGTERM.
  const server = startCommand("smbd", ["--daemon", "--foreground", "--configfile", config]);
  onTestFinished(async () => {
    const ended = once(server, "exit");
    server.kill("SIGTERM");
    await ended;
  });
  const args = ["-p", String(port), "-U", `${USER}%secret`, "//127.0.0.1/transfers", "-c", "ls"];
  await expect.poll(() => runCommand("smbclient", args).then(({ exitCode }) => exitCode)).toBe(0);
  return port;
}

function namesIn(listing: string): string[] {
  return [...listing.matchAll(/^ {2}(.*?) +[A-Z]+ +\d+ {2}/gm)].map(([, name]) => name ?? "");
}
