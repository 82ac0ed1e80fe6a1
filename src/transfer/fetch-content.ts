/** Fetches the content of a transfer into its stage: reserves room, then fetches one ZIP or single files. */
import { Fault } from "../base/faults.ts";
import type { Stage } from "../ledger/port.ts";
import type { TransferAccess } from "../service/port.ts";
import { adoptContent } from "./adopt.ts";
import { failOptional } from "./answers.ts";
import { type FetchContext, type Fetched, fetchFiles } from "./fetch.ts";
import { fetchZip, MAY_BE_DAMAGE } from "./fetch-zip.ts";
import type { Plan } from "./plan.ts";
import type { Run } from "./run.ts";
import type { Source, TransferTools } from "./tools.ts";

/** If the ZIP is refused or damaged, single files are fetched instead. */
export async function fetchContent(
  tools: TransferTools,
  { service }: Source,
  run: Run,
  stage: Stage,
  access: TransferAccess,
  plan: Plan,
  signal: AbortSignal,
): Promise<Fetched> {
  const presentBytes = await adoptContent(tools, stage, plan);
  await tools.ledger.stages.reclaim(stage);
  const reservation = await tools.inbox.reserve(run.key, plan.neededBytes - presentBytes, plan.files.length);
  let done = 0;
  const progress = (bytes: number, receivedBytes: number) => {
    done += bytes;
    tools.emit({
      type: "transfer-progressed",
      record: run.record,
      doneBytes: Math.min(done, plan.totalBytes),
      totalBytes: plan.totalBytes,
      receivedBytes,
    });
  };
  const context: FetchContext = {
    service,
    access,
    stage,
    parallel: tools.limits.filesPerTransfer,
    fileMode: run.handoff.fileMode,
    onFound: (bytes) => progress(bytes, 0),
    onBody: (canResume) => run.pace.awaitBytes(canResume),
    onBytes(bytes) {
      run.pace.received(bytes);
      reservation.use(bytes);
      progress(bytes, bytes);
    },
  };
  try {
    if (plan.way === "files") return await fetchFiles(context, plan, signal);
    return await fetchZip(context, plan, signal).catch((error: unknown) => {
      if (!(error instanceof Fault)) throw error;
      const isDamage = MAY_BE_DAMAGE.has(error.code);
      if (!isDamage && !failOptional(run, "zip", error)) throw error;
      return fetchFiles(context, plan, signal);
    });
  } catch (error) {
    if (error instanceof Fault && error.code === "DISK_FULL") reservation.ranShort();
    throw error;
  } finally {
    reservation.release();
  }
}
