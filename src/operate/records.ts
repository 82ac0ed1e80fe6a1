/** Questions about records that are gone or older, as commands find them without a daemon. */
import { join } from "node:path";
import { unlessStopped } from "../base/deadline.ts";
import { Fault } from "../base/faults.ts";
import { formatCount } from "../base/phrases.ts";
import { asOwnerOf } from "../base/process.ts";
import { timeLimit } from "../base/timers.ts";
import { WORK } from "../config/folders.ts";
import type { Settings } from "../config/settings.ts";
import {
  demandKnownFormat,
  findLost,
  type Question,
  readAnswers,
  readWorkId,
  type Served,
  watermarkOf,
} from "../inbox/work-folder.ts";
import { peekLedger } from "../ledger/peek.ts";
import { findOlder } from "../ledger/watermark.ts";
import { withDaemonsState } from "./local.ts";

/** What a start asks an operator; `undefined` if no record is gone or older. Throws `WORK_NEWER` or `WORK_OLDER`. */
export async function findQuestion(served: Served): Promise<Question | undefined> {
  const { work, state, mailboxes } = served;
  const lost = await findLost(served);
  if (lost !== undefined) return lost;
  await demandKnownFormat(work);
  const id = (await readWorkId(work)) ?? "";
  const older = await findOlder(watermarkOf({ state, id }), id, peekLedger(served));
  return older && { ...older, mailboxes };
}

/** The same with the mailboxes that are not decided yet, and for people. */
export async function findOpenQuestion(served: Served): Promise<Question | undefined> {
  const question = await findQuestion(served).then(withCount);
  const answers = question && (await readAnswers(served, question));
  return question && { ...question, mailboxes: question.mailboxes.filter(({ name }) => !answers?.has(name)) };
}

/** What a start would report; `undefined` if nothing is missing or all is decided. */
export async function findRefusal(settings: Settings): Promise<Fault | undefined> {
  const find = async () => findOpenQuestion(await withDaemonsState(settings));
  const question = await asOwnerOf(settings.work, find);
  return question?.mailboxes.length ? new Fault(question.code, { detail: question.detail }) : undefined;
}

/** More records are not read. The disk of the inbox may hang. */
const [MAX_READ, PATIENCE_MS] = [1_000, 5_000];

/** Says too how many transfers were delivered to the inbox before, if their records are still there. */
export async function withCount(question: Question | undefined): Promise<Question | undefined> {
  if (question === undefined) return undefined;
  const limit = timeLimit(PATIENCE_MS);
  // The question is the same without a count.
  const count = await unlessStopped(countDelivered(question, limit.signal), 0, limit.signal).catch(() => "");
  limit.clear();
  return { ...question, detail: `${question.detail}${count}` };
}

async function countDelivered({ before: inbox = "", about }: Question, over: AbortSignal): Promise<string> {
  const work = join(inbox, WORK);
  if (!about.split(" ").includes((await readWorkId(work)) ?? "")) return "";
  let [left, delivered] = [MAX_READ, 0];
  for await (const { state } of peekLedger({ work, inbox }).all()) {
    if (over.aborted || --left < 0) break;
    if (state === "delivered" || state === "picked-up") delivered++;
  }
  const count = `${left < 0 ? "at least " : ""}${formatCount(delivered, "transfer was", "transfers were")}`;
  return delivered === 0 ? "" : `; ${count} delivered to ${inbox} before`;
}
