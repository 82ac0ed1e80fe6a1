/** Questions about records that are gone or older, as commands find them without a daemon. */
import type { Settings } from "../config/settings.ts";
import { findLost, type Question, readAnswers, readWorkId, watermarkOf } from "../inbox/work-folder.ts";
import { peekLedger } from "../ledger/peek.ts";
import { findOlder } from "../ledger/watermark.ts";

/** Why a daemon waits at its start, with the mailboxes that are not decided yet; `undefined` if it does not wait. */
export async function findQuestion(settings: Settings): Promise<Question | undefined> {
  const { work, state, mailboxes } = settings;
  const id = (await readWorkId(work)) ?? "";
  const ledger = peekLedger(settings);
  const readEnd = (name: string, round: number) => ledger.readEnd(name, round);
  const older = await findOlder(watermarkOf({ state, id }), id, readEnd);
  const question = (await findLost(settings)) ?? (older && { ...older, mailboxes });
  const answers = question && (await readAnswers(settings, question));
  return question && { ...question, mailboxes: question.mailboxes.filter(({ name }) => !answers?.has(name)) };
}
