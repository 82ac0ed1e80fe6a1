/** What can be done with one transfer, as forms that need no script. */
import type { Action } from "../model/order.ts";
import type { TransferStatus } from "../model/status.ts";
import { type Html, html } from "./html.ts";

/** What has to be weighed stands before the button. */
const WARNINGS: Readonly<Partial<Record<Action, string>>> = {
  release: "It was not proven to be what its sender sent. It is delivered marked as not verified.",
  discard: "What was received of it is deleted, and it is not downloaded again.",
};
const LABELS: Readonly<Record<Action, string>> = {
  retry: "Try now",
  release: "Release",
  discard: "Discard",
  redeliver: "Deliver again",
};

export function renderForms(transfer: TransferStatus, proof: string): Html {
  const { state, reason, noAttemptsLeft } = transfer;
  const canSupply = reason === "password" && noAttemptsLeft !== true;
  if (reason === "not-picked-up") return html``;
  if (state === "gone")
    return html`<div class="actions">${renderForm("discard", "Seen", transfer, proof)}</div>`;
  if (reason === "handoff") return html`<div class="actions">${renderAction("retry", transfer, proof)}</div>`;
  const actions: Action[] = state === "quarantined" ? ["retry", "release", "discard"] : ["retry", "discard"];
  return html`<div class="actions">${canSupply ? renderPassword(transfer, proof) : undefined}${actions.map(
    (action) => renderAction(action, transfer, proof),
  )}</div>`;
}

function renderPassword(transfer: TransferStatus, proof: string): Html {
  return html`<form action="api/actions" method="post">${hidden("password", transfer, proof)}<label>Password of ${transfer.trackingId} <input type="password" name="password" autocomplete="off" required></label> <button>Supply</button></form>`;
}

function renderAction(action: Action, transfer: TransferStatus, proof: string): Html {
  const warning = WARNINGS[action];
  const form = renderForm(action, LABELS[action], transfer, proof);
  if (warning === undefined) return form;
  return html`<details><summary>${LABELS[action]}…</summary><p>${warning}</p>${form}</details>`;
}

function renderForm(action: Action, label: string, transfer: TransferStatus, proof: string): Html {
  return html`<form action="api/actions" method="post">${hidden(action, transfer, proof)}<button>${label}</button></form>`;
}

function hidden(action: string, { mailbox, trackingId }: TransferStatus, proof: string): Html {
  const fields = { action, mailbox, trackingId, proof, page: "yes" };
  return html`${Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}`;
}
