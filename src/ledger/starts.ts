/**
 * Where mailboxes start, as files `starts/NAME.json`. Each lists the transfers that were there before its mailbox started
 * with `since: now`. The first process to create the file decides, for ever.
 *
 * `doubt.json` says that records of earlier deliveries may be missing here, and of which mailboxes. Transfers that the service
 * listed then, in files `starts/NAME-ID.json`, may have been delivered before.
 */

import { join } from "node:path";
import * as v from "valibot";
import { tryRead } from "../base/disk.ts";
import { replaceDurably } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { parseAs } from "../base/json.ts";
import { randomHex } from "../base/random.ts";
import { DECISIONS } from "../model/order.ts";
import { digestOfMailbox } from "../model/transfer.ts";
import type { Rounds } from "./rounds.ts";

const DOUBT_FILE = "doubt.json";

const Shape = v.object({ mailbox: v.string(), at: v.string(), before: v.array(v.string()) });

/** What becomes of those transfers: an operator is asked, or has decided. */
const VERDICTS = ["ask", ...DECISIONS] as const;
type Verdict = (typeof VERDICTS)[number];

/** `verdicts`: by the digest of the mailbox. */
const DoubtShape = v.object({ id: v.string(), verdicts: v.record(v.string(), v.picklist(VERDICTS)) });

export function startsIn({ disk, paths, once }: Rounds) {
  let doubt: Promise<v.InferOutput<typeof DoubtShape> | undefined> | undefined;
  const pathOf = (mailbox: string, doubtId?: string) => {
    const name = digestOfMailbox(mailbox);
    return join(paths.starts, `${doubtId === undefined ? name : `${name}-${doubtId}`}.json`);
  };
  const readShape = async <Value>(path: string, shape: v.GenericSchema<unknown, Value>) => {
    const text = await tryRead(disk, path);
    if (text === undefined) return undefined;
    const value = parseAs(shape, text);
    if (value === undefined) throw new Fault("RECORD_UNREADABLE", { detail: path });
    return value;
  };
  /** The tracking-ids; `undefined` if the mailbox has no start yet. Throws `RECORD_UNREADABLE`. */
  const read = async (mailbox: string, doubtId?: string): Promise<ReadonlySet<string> | undefined> => {
    const found = await readShape(pathOf(mailbox, doubtId), Shape);
    return found && new Set(found.before);
  };
  return {
    read,
    /** Returns the tracking-ids that count: those of another process, if it was first. */
    async create(
      mailbox: string,
      before: Iterable<string>,
      at: string,
      doubtId?: string,
    ): Promise<ReadonlySet<string>> {
      await once.create(
        pathOf(mailbox, doubtId),
        `${JSON.stringify({ mailbox, at, before: [...before] })}\n`,
      );
      return (await read(mailbox, doubtId)) ?? new Set();
    },
    /** The doubt about the records of a mailbox, if there is one. Throws `RECORD_UNREADABLE`. */
    async doubtAbout(mailbox: string): Promise<{ id: string; verdict: Verdict } | undefined> {
      doubt ??= readShape(join(paths.work, DOUBT_FILE), DoubtShape);
      const found = await doubt.catch((error: unknown) => {
        doubt = undefined;
        throw error;
      });
      const verdict = found?.verdicts[digestOfMailbox(mailbox)];
      return found && verdict && { id: found.id, verdict };
    },
  };
}

/** Replaces an earlier doubt. Durable. `verdicts`: by mailbox. `temporary`: in the work folder. */
export async function noteDoubt(
  work: string,
  verdicts: Iterable<readonly [mailbox: string, verdict: Verdict]>,
  temporary: string,
): Promise<void> {
  const byDigest = [...verdicts].map(([mailbox, verdict]) => [digestOfMailbox(mailbox), verdict]);
  const text = JSON.stringify({ id: randomHex(6), verdicts: Object.fromEntries(byDigest) });
  await replaceDurably(join(work, DOUBT_FILE), `${text}\n`, 0o600, temporary);
}
