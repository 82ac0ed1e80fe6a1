/** Facts about services, as files `services/NAME.json`. Each is added once, and never changes. */
import { hash } from "node:crypto";
import { join } from "node:path";
import { tryRead } from "../base/disk.ts";
import type { Rounds } from "./rounds.ts";

export function servicesIn({ disk, paths, once }: Rounds) {
  const pathOf = (fact: readonly string[]) =>
    join(paths.services, `${hash("sha256", fact.join("\0")).slice(0, 32)}.json`);
  const has = async (...fact: readonly string[]) => (await tryRead(disk, pathOf(fact))) !== undefined;
  const add = async (...fact: readonly string[]) =>
    (await has(...fact)) || once.create(pathOf(fact), `${JSON.stringify(fact)}\n`);
  return { has, add };
}
