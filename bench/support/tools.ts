/** The programs that Inlet is measured beside, and what measures them: as the machine has them, else from Debian. */
import { installProgram } from "../../test/support/debian.ts";

export interface Tools {
  readonly nginx: string;
  readonly curl: string;
  readonly aria2c: string;
  readonly rclone: string;
  readonly openssl: string;
  readonly sha256sum: string;
  /** GNU time: the shell's own does not tell memory. */
  readonly time: string;
}

/** In the order in which they are looked for. */
const PACKAGES: Readonly<Record<keyof Tools, string>> = {
  nginx: "nginx-light",
  curl: "curl",
  aria2c: "aria2",
  rclone: "rclone",
  openssl: "openssl",
  sha256sum: "coreutils",
  time: "time",
};

/** Installs what is missing, which needs root. Throws with the name of the package that cannot be had. */
export async function findTools(): Promise<Tools> {
  const found: Partial<Record<keyof Tools, string>> = {};
  for (const [name, packageName] of Object.entries(PACKAGES)) {
    found[name as keyof Tools] = await installProgram(name, packageName);
  }
  return found as Tools;
}
