/** Facts about services, as files `services/NAME.json`. Each is added once, and never changes. */
import { hash } from "node:crypto";
import { join } from "node:path";
import { tryRead } from "../base/disk.ts";
import type { Rounds } from "./rounds.ts";

export function servicesIn({ disk, paths, once }: Rounds) {
  const pathOf = (fact: readonly string[]) =>
    join(paths.services, `${hash("sha256", fact.join("\0")).slice(0, 32)}.json`);
  return {
    has: async (...fact: readonly string[]) => (await tryRead(disk, pathOf(fact))) !== undefined,
    add: (...fact: readonly string[]) => once.create(pathOf(fact), `${JSON.stringify(fact)}\n`),
  };
}
