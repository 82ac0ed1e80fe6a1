/** The programs that Inlet is compared with, and tools for measuring: those of the machine, else from Debian. */
import { spawnSync } from "node:child_process";
import { installProgram } from "../../test/support/debian.ts";

export interface Tools {
  readonly nginx: string;
  readonly curl: string;
  readonly aria2c: string;
  readonly rclone: string;
  readonly openssl: string;
  readonly dovecot: string;
  readonly mbsync: string;
  readonly strace: string;
  readonly sha256sum: string;
  readonly sync: string;
  readonly xargs: string;
  /** GNU time: the shell's builtin does not measure memory. */
  readonly time: string;
}

/** In the order of installation. */
const PACKAGES: Readonly<Record<keyof Tools, string>> = {
  nginx: "nginx-light",
  curl: "curl",
  aria2c: "aria2",
  rclone: "rclone",
  openssl: "openssl",
  dovecot: "dovecot-imapd",
  mbsync: "isync",
  strace: "strace",
  sha256sum: "coreutils",
  sync: "coreutils",
  xargs: "findutils",
  time: "time",
};

/** Installs missing programs, which needs root. Throws with the name of a package that cannot be installed. */
export async function findTools(): Promise<Tools> {
  const found: Partial<Record<keyof Tools, string>> = {};
  for (const [name, packageName] of Object.entries(PACKAGES)) {
    found[name as keyof Tools] = await installProgram(name, packageName);
  }
  return found as Tools;
}

/** As printed by the programs. */
export function readVersions(tools: Tools): Record<string, string> {
  const { nginx, curl, aria2c, rclone, openssl, dovecot, mbsync, strace } = tools;
  const first = (program: string, ...args: readonly string[]) => {
    const { stdout, stderr } = spawnSync(program, args, { encoding: "utf8" });
    return /\d+(\.\d+)+\w*/.exec(`${stdout}${stderr}`)?.[0] ?? "unknown";
  };
  return {
    nginx: first(nginx, "-v"),
    curl: first(curl, "--version"),
    aria2: first(aria2c, "--version"),
    rclone: first(rclone, "--version"),
    OpenSSL: first(openssl, "version"),
    Dovecot: first(dovecot, "--version"),
    mbsync: first(mbsync, "--version"),
    strace: first(strace, "--version"),
  };
}
