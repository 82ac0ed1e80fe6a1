/**
 * Where mailboxes start, as files `starts/NAME.json`. Each lists the transfers that were there before its mailbox started
 * with `since: now`. The first process to create the file decides, for ever.
 */
import { join } from "node:path";
import * as v from "valibot";
import { tryRead } from "../base/disk.ts";
import { Fault } from "../base/faults.ts";
import { digestOfMailbox } from "../model/transfer.ts";
import { parseJson } from "./format.ts";
import type { Rounds } from "./rounds.ts";

const Shape = v.object({ mailbox: v.string(), at: v.string(), before: v.array(v.string()) });

export function startsIn({ disk, paths, once }: Rounds) {
  const pathOf = (mailbox: string) => join(paths.starts, `${digestOfMailbox(mailbox)}.json`);
  /** The tracking-ids; `undefined` if the mailbox has no start yet. Throws `RECORD_UNREADABLE`. */
  const read = async (mailbox: string): Promise<ReadonlySet<string> | undefined> => {
    const path = pathOf(mailbox);
    const text = await tryRead(disk, path);
    if (text === undefined) return undefined;
    const result = v.safeParse(Shape, parseJson(text));
    if (!result.success) throw new Fault("RECORD_UNREADABLE", { detail: path });
    return new Set(result.output.before);
  };
  return {
    read,
    /** Returns the tracking-ids that count: those of another process, if it was first. */
    async create(mailbox: string, before: Iterable<string>, at: string): Promise<ReadonlySet<string>> {
      await once.create(pathOf(mailbox), `${JSON.stringify({ mailbox, at, before: [...before] })}\n`);
      return (await read(mailbox)) ?? new Set();
    },
  };
}
