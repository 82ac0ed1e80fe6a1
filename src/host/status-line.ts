/** The status in one line, for `systemctl status`. */
import { formatBytes, formatCount } from "../base/phrases.ts";
import type { Status } from "../model/status.ts";

const MAX_CHARACTERS = 300;

export function describeInOneLine(status: Status): string {
  const { troubles, totals, mailboxes, recent } = status;
  const [trouble] = troubles;
  const active = mailboxes.filter(({ paused }) => !paused).length;
  const parts = [
    trouble === undefined ? undefined : `${trouble.what}: ${trouble.message}`,
    troubles.length > 1 ? formatCount(troubles.length - 1, "more problem", "more problems") : undefined,
    totals.attention > 0
      ? `${formatCount(totals.attention, "transfer needs", "transfers need")} attention`
      : undefined,
    describeWork(status),
    `${formatCount(active, "mailbox is", "mailboxes are")} polled`,
    recent[0] === undefined ? undefined : `last delivery ${recent[0].at}`,
  ];
  const line = parts
    .filter((part) => part !== undefined)
    .join("; ")
    .replaceAll(/\p{Cc}+/gu, " ");
  return line.length > MAX_CHARACTERS ? `${line.slice(0, MAX_CHARACTERS - 1)}…` : line;
}

function describeWork({ downloading, totals }: Status): string | undefined {
  if (totals.downloading === 0) {
    return totals.queued > 0 ? `${formatCount(totals.queued, "transfer", "transfers")} queued` : undefined;
  }
  const done = downloading.reduce((sum, { progress }) => sum + (progress?.doneBytes ?? 0), 0);
  const total = downloading.reduce((sum, { progress }) => sum + (progress?.totalBytes ?? 0), 0);
  const share = total === 0 ? "" : `, ${formatBytes(done)} of ${formatBytes(total)}`;
  return `${formatCount(totals.downloading, "transfer", "transfers")} downloading${share}`;
}
