/** `once --dry-run`: what a run would download, where to, and which passwords are missing. It downloads nothing. */
import { systemClock } from "../base/clock.ts";
import { asFault, describeFault, Fault } from "../base/faults.ts";
import { asOwnerOf } from "../base/process.ts";
import { loadSettings } from "../config/load.ts";
import type { MailboxSettings, Settings } from "../config/settings.ts";
import { findClientId } from "../host/memory.ts";
import { withKeys } from "../ledger/keys.ts";
import { readPauses, withPauses } from "../ledger/pauses.ts";
import { ListFields } from "../mailbox/list-fields.ts";
import type { ListedTransfer } from "../model/transfer.ts";
import { PLANS, type Plan } from "../model/views.ts";
import { withDaemonsState } from "../operate/local.ts";
import { type PlannedTransfer, planMailbox } from "../operate/plan.ts";
import { openClient, openTokens, tryMakeTokensFolder } from "./client.ts";
import { type Context, type Outcome, outcomeOfFault } from "./command.ts";
import type { CommonOptions } from "./options.ts";
import { columnsOf, printRows, say, timeColumn } from "./printing.ts";

export async function dryRun(context: Context, options: CommonOptions): Promise<Outcome> {
  const loaded = await loadSettings({ env: context.env, path: options.config });
  const mailboxes = await withKeys(loaded.work, loaded.mailboxes, "foreseen");
  const settings = await withDaemonsState({ ...loaded, mailboxes });
  const planned: PlannedTransfer[] = [];
  const failed: Fault[] = [];
  let settled = 0;
  for (const mailbox of withPauses(settings.mailboxes, await readPauses(settings.work))) {
    const { name, label = name } = mailbox;
    if (mailbox.paused) {
      say(context, `${label} is paused: it is not polled.`);
      continue;
    }
    try {
      const listed = await asOwnerOf(settings.state, () => readList(settings, mailbox, context.stop));
      const plans = planMailbox(settings, mailbox, listed, systemClock.now(), context.stop);
      for await (const plan of plans) {
        if (plan === undefined) settled++;
        else planned.push({ ...plan, mailbox: label });
      }
    } catch (error) {
      const fault = asFault(error);
      if (fault.code === "STOPPED") throw fault;
      failed.push(fault);
      say(context, `${label}: ${describeFault(fault)}`);
    }
  }
  printRows(context, options, columnsFor(context, settings.timezone), planned);
  if (!options.json) say(context, summaryOf(planned, settled));
  if (failed.some((fault) => outcomeOfFault(fault) === "unreachable")) return "unreachable";
  const needsPerson = planned.some(({ plan }) => plan === "password" || plan === "hold");
  return needsPerson || failed.length > 0 ? "attention" : "fine";
}

function columnsFor(context: Context, zone: string | undefined) {
  return [
    ...columnsOf<PlannedTransfer>("plan", "mailbox", "sender", "trackingId"),
    timeColumn(context, "EXPIRES", zone, ({ expires }: PlannedTransfer) => expires ?? ""),
    ...columnsOf<PlannedTransfer>("password", "folder", "because"),
  ];
}

function summaryOf(planned: readonly PlannedTransfer[], settled: number): string {
  const parts = (Object.keys(PLANS) as Plan[]).flatMap((plan) => {
    const count = planned.filter((each) => each.plan === plan).length;
    return count === 0 ? [] : [`${count} ${PLANS[plan]}`];
  });
  return `${[...parts, `${settled} settled before`].join("; ")}. Nothing was changed.`;
}

async function readList(
  { state }: Settings,
  mailbox: MailboxSettings,
  signal: AbortSignal,
): Promise<ListedTransfer[]> {
  await using scope = new AsyncDisposableStack();
  const clientId = (await mailbox.service.clientId?.read(signal)) ?? (await findClientId(state));
  if (clientId === undefined) {
    const detail = "no client id is configured, and none was created yet: start the daemon once";
    throw new Fault("CONFIG_INVALID", { detail });
  }
  const service = scope.adopt(openClient(mailbox.service, clientId), (it) => it.close());
  const tokens = await openTokens(mailbox, service, await tryMakeTokensFolder(state));
  const fields = new ListFields();
  return await tokens.use(
    (address) =>
      fields.read(async (wanted) => {
        const query = { active: true, fields: wanted };
        // Polls report entries that cannot be read.
        const pages = await Array.fromAsync(service.listReceived(address, query, () => {}, signal));
        return pages.flat();
      }),
    signal,
  );
}
