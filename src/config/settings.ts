/** What the settings mean for a transfer: its hand-off and its inbox. */

import { type HandoffStep, STEPS, type StepOwners } from "../model/handoff.ts";
import { type Handoff, mailboxOf } from "../model/mailbox.ts";
import type { Routed } from "../model/record.ts";
import { routeOf } from "../model/route.ts";
import type { Settings } from "./load.ts";

export type { HttpSettings } from "./http.ts";
export type { Settings } from "./load.ts";
export type { MailboxSettings } from "./mailboxes.ts";
export type { RedisQueueSettings } from "./queue.ts";
export type { ServiceSettings } from "./service.ts";

/**
 * The hand-off of a transfer, by its mailbox and the rule that decided. A mailbox that is no longer configured may have had
 * its own: the common one takes its place, and then removes no folder. Without the rule that decided, nothing is removed,
 * and no command or webhook runs. `owners`: of a delivery's steps; each runs as its owner has it now, or not at all.
 */
export function handoffOf(
  { mailboxes, handoff: common }: Settings,
  { mailbox, rule, owners = {} }: Routed & { readonly owners?: StepOwners | undefined },
): Handoff {
  const found = mailboxOf(mailboxes, { mailbox });
  const route = found && routeOf(found, { rule });
  const handoff = route?.handoff ?? found?.handoff ?? common;
  const { keep, ...withoutKeep } = handoff;
  const { command, webhook, ...withoutSteps } = withoutKeep;
  if (rule !== undefined && route === undefined)
    return { ...withoutSteps, gone: { command: "route", webhook: "route" } };
  const following = found === undefined ? withoutKeep : handoff;
  const others = STEPS.filter((step) => owners[step] && owners[step] !== handoff.owners?.[step]);
  if (others.length === 0) return following;
  const isCommon = (step: HandoffStep) => owners[step] === "common";
  const gone = others.filter((step) => !isCommon(step)).map((step) => [step, owners[step]]);
  const steps = others.map((step) => [step, isCommon(step) ? common[step] : undefined]);
  return { ...following, ...Object.fromEntries(steps), gone: Object.fromEntries(gone) };
}

/** Every hand-off: the common one, and those of mailboxes and routes. */
export function handoffsOf(settings: Settings): Handoff[] {
  return [...new Set([settings, ...targetsOf(settings)].map(({ handoff }) => handoff))];
}

/** The numbers of the groups of delivered files, as far as they were looked up. */
export function groupsOf(settings: Settings): number[] {
  return [...new Set(handoffsOf(settings).flatMap(({ gid }) => gid ?? []))];
}

export type Target = ReturnType<typeof targetsOf>[number];

/** Where deliveries go: for each mailbox, those that match no route, then those of each route. */
export function targetsOf({ mailboxes, ...common }: Settings) {
  return mailboxes.flatMap(({ name: mailbox, layout, routing, ...own }) => {
    const { inbox = common.inbox, handoff = common.handoff } = own;
    const target = { mailbox, inbox, layout, handoff };
    const routes = (routing?.routes ?? []).map((route) => ({
      mailbox,
      inbox: route.inbox ?? inbox,
      layout: route.layout ?? layout,
      handoff: route.handoff ?? handoff,
    }));
    return [target, ...routes];
  });
}

/** The inboxes to deliver to, each with the mode that it gets if it has to be created. The common one comes first. */
export function inboxesOf(settings: Settings): { readonly path: string; readonly mode: number }[] {
  const modes = new Map<string, number>();
  for (const { inbox, handoff } of [settings, ...targetsOf(settings)]) {
    if (!modes.has(inbox)) modes.set(inbox, handoff.folderMode);
  }
  return [...modes].map(([path, mode]) => ({ path, mode }));
}
