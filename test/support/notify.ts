/** Settings of notifications for tests, and what receivers got. This file needs no test runner. */
import type { ChannelSettings, MailChannel } from "../../src/model/notify.ts";
import { NOTICE_KINDS } from "../../src/model/notify.ts";
import type { Receiver } from "./receiver.ts";
import { LOGIN, plainSecret, receiverAt } from "./settings.ts";

export const SECRET = "Signing+Key%7 ö";

/** Short times. */
const USUAL: Omit<ChannelSettings, "channel"> = {
  on: NOTICE_KINDS,
  urgent: ["disk"],
  mailboxes: undefined,
  quiet: undefined,
  gatherMs: 200,
  everyMs: 200,
};

export function byWebhook(url: string, settings: Partial<ChannelSettings> = {}): ChannelSettings {
  const channel = { kind: "webhook", ...receiverAt(url, SECRET) } as const;
  return { ...USUAL, channel, ...settings };
}

/** STARTTLS and a login. */
export function byMail(
  { port, ca }: { readonly port: number; readonly ca?: string },
  settings: Partial<ChannelSettings> = {},
  mail: Partial<MailChannel> = {},
): ChannelSettings {
  const channel = {
    kind: "mail",
    to: ["ops@example.com"],
    from: "inlet@example.com",
    host: "127.0.0.1",
    port,
    tls: "required",
    user: plainSecret(LOGIN.user),
    password: plainSecret(LOGIN.password),
    ca,
    timeoutMs: 10_000,
    ...mail,
  } as const;
  return { ...USUAL, channel, ...settings };
}

export interface NotifiedGroup {
  readonly kind: string;
  readonly over: boolean;
  readonly count: number;
  readonly first: readonly Readonly<Record<string, string>>[];
}

/** The groups of all calls, in order. */
export function groupsOf({ calls }: Pick<Receiver, "calls">): NotifiedGroup[] {
  return calls.flatMap(({ body }) => JSON.parse(body).notices as NotifiedGroup[]);
}

/** `kind trackingId` of everything that was notified with details. */
export function notifiedOf(receiver: Receiver): string[] {
  return groupsOf(receiver).flatMap(({ kind, over, first }) =>
    first.map(({ trackingId = "" }) => [kind, trackingId, over ? "over" : ""].filter(Boolean).join(" ")),
  );
}
