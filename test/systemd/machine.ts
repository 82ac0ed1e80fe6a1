/**
 * A machine with a real systemd: this system's files under an overlay, booted in namespaces. It leaves nothing behind, and
 * has only a loopback network. Needs root, overlayfs and systemd-nspawn.
 */
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { installProgram } from "../support/debian.ts";
import { type Finished, makeFolder, runCommand, startCommand } from "../support/program.ts";

/** SIGRTMIN+4: systemd powers off. */
const POWER_OFF = 38;

const TARGET = `[Unit]
Requires=basic.target
After=basic.target
AllowIsolate=yes
`;

/** nspawn hides /tmp, so the machine's files are below its own root. */
const BOOT = `set -e
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
# An Inlet that was used on this system is not the machine's.
rm -rf "$1/root/var/lib/inlet" "$1/root/etc/inlet"
: > "$1/root/etc/fstab"
: > "$1/root/etc/machine-id"
cp -a "$1/files/." "$1/root/"
exec systemd-nspawn -q -D "$1/root" --register=no --keep-unit --private-network --link-journal=no \\
  --console=read-only --boot systemd.unit=test.target systemd.show_status=0`;

export interface Machine {
  /** Runs a program as root. Throws a failure with its output. */
  run(...command: readonly string[]): Promise<string>;
  /** The same for a program that may fail. */
  attempt(...command: readonly string[]): Promise<Finished>;
  /** A bash script whose lines must all succeed. */
  sh(script: string): Promise<string>;
  /** Writes a file in it. */
  write(path: string, text: string): Promise<void>;
}

/** `files`: folders of this system to copy, by their path in the machine. */
export async function bootMachine(files: Readonly<Record<string, string>>): Promise<Machine> {
  expect(process.getuid?.(), "booting a systemd takes root").toBe(0);
  await installProgram("systemd-nspawn", "systemd-container");
  const folder = await makeFolder();
  const units = join(folder, "files/etc/systemd/system");
  for (const name of ["upper", "work", "root", "files"]) await mkdir(join(folder, name), { mode: 0o755 });
  await mkdir(units, { recursive: true });
  await writeFile(join(units, "test.target"), TARGET);
  for (const [target, source] of Object.entries(files)) {
    const place = join(folder, "files", target);
    await mkdir(join(place, ".."), { recursive: true });
    await runCommand("cp", ["-a", source, place]);
  }
  const args = ["--mount", "--propagation", "private", "bash", "-c", BOOT, "boot", folder];
  const nspawn = startCommand("unshare", args, {});
  let output = "";
  for (const stream of [nspawn.stdout, nspawn.stderr]) stream?.on("data", (chunk) => (output += chunk));
  const leader = await findLeader(nspawn.pid ?? 0, () => output);
  onTestFinished(async () => {
    if (nspawn.exitCode !== null) return;
    const gone = once(nspawn, "exit");
    process.kill(leader, POWER_OFF);
    await gone;
  });
  const attempt = (...command: readonly string[]) =>
    runCommand("nsenter", ["-t", String(leader), "-m", "-u", "-i", "-n", "-p", "-C", "--", ...command], {
      cwd: "/",
    });
  const run = async (...command: readonly string[]): Promise<string> => {
    const { exitCode, stdout, stderr } = await attempt(...command);
    if (exitCode === 0) return stdout;
    const { stdout: log } = await attempt("journalctl", "--no-pager", "--lines=40");
    // On a busy system, a group of processes that has ended may be removed after the next one of its name was made.
    const isGroupLost = command.includes("restart") && log.slice(-1_000).includes("status=219/CGROUP");
    if (isGroupLost) return run(...command);
    throw new Error(`${command.join(" ")} ended with ${exitCode}: ${stderr}${stdout}\n${log}`);
  };
  await expect
    .poll(async () => (await attempt("systemctl", "is-active", "test.target")).stdout.trim())
    .toBe("active");
  return {
    run,
    attempt,
    sh: (script) => run("bash", "-euo", "pipefail", "-c", script),
    async write(path, text) {
      await run("bash", "-euc", 'mkdir -p "$(dirname "$1")"; printf %s "$2" > "$1"', "write", path, text);
    },
  };
}

/** The machine's first process, a child of nspawn. */
async function findLeader(nspawn: number, output: () => string): Promise<number> {
  const find = async () => {
    const children = await readFile(`/proc/${nspawn}/task/${nspawn}/children`, "utf8").catch(() => "");
    const [child] = children.trim().split(" ").filter(Boolean);
    if (child === undefined) return 0;
    const name = await readFile(`/proc/${child}/comm`, "utf8").catch(() => "");
    return name.trim() === "systemd" ? Number(child) : 0;
  };
  await expect.poll(find, { message: `no machine: ${output()}` }).toBeGreaterThan(0);
  return find();
}
