/** Facts about services, as files `services/NAME.json`. Each is added once, and never changes, or has its last times. */
import { hash } from "node:crypto";
import { join } from "node:path";
import * as v from "valibot";
import { tryRead } from "../base/disk.ts";
import { replaceDurably } from "../base/durable.ts";
import type { Rounds } from "./rounds.ts";

const Times = v.pipe(v.string(), v.parseJson(), v.array(v.number()));
const TIMES_KEPT = 2;
const DAY_MS = 24 * 60 * 60_000;

export function servicesIn({ disk, paths, once }: Rounds) {
  const pathOf = (fact: readonly string[]) =>
    join(paths.services, `${hash("sha256", fact.join("\0")).slice(0, 32)}.json`);
  const has = async (...fact: readonly string[]) => (await tryRead(disk, pathOf(fact))) !== undefined;
  const add = async (...fact: readonly string[]) =>
    (await has(...fact)) || once.create(pathOf(fact), `${JSON.stringify(fact)}\n`);
  const timesOf = async (fact: readonly string[]) => {
    const read = v.safeParse(Times, await tryRead(disk, pathOf(fact)));
    return read.success ? read.output : [];
  };
  /** It was so twice, and the last time less than a day ago. */
  const isUsual = async (nowMs: number, ...fact: readonly string[]) => {
    const times = await timesOf(fact);
    return times.length === TIMES_KEPT && Math.abs(nowMs - Math.max(...times)) < DAY_MS;
  };
  /** It is so now. Processes that add at the same time may lose one of both. */
  const addTime = async (nowMs: number, ...fact: readonly string[]) => {
    const times = [...(await timesOf(fact)), nowMs].slice(-TIMES_KEPT);
    await replaceDurably(pathOf(fact), `${JSON.stringify(times)}\n`, 0o600, paths.temporary);
  };
  return { has, add, isUsual, addTime };
}
