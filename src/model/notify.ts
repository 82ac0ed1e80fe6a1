/** The operator's settings for notifications. */
import type { SecretSource } from "../base/secret.ts";
import type { Receiver } from "../base/signed-post.ts";
import type { Timetable } from "../base/timetable.ts";

export const NOTICE_KINDS = [
  "password",
  "quarantined",
  "expiring",
  "gone",
  "refused",
  "held",
  "overdue",
  "not-picked-up",
  "handoff",
  "service",
  "verification",
  "disk",
  "queue",
  "configuration",
  "stalled",
] as const;

export type NoticeKind = (typeof NOTICE_KINDS)[number];

/** Kinds that concern the whole daemon, and no mailbox. */
export const DAEMON_KINDS: readonly NoticeKind[] = ["disk", "queue", "configuration", "stalled"];

/** One entry of `notify`: the channel, which notices it gets, and when. */
export interface ChannelSettings {
  readonly channel: MailChannel | WebhookChannel;
  readonly on: readonly NoticeKind[];
  /** Sent in quiet hours too, and not held back for a digest. */
  readonly urgent: readonly NoticeKind[];
  /** Globs over the names and addresses of mailboxes; `undefined`: all. */
  readonly mailboxes: readonly string[] | undefined;
  readonly quiet: Timetable | undefined;
  /** How long further notices are awaited before a message is sent. */
  readonly gatherMs: number;
  /** The least time between two messages. */
  readonly everyMs: number;
}

/** `implicit`: TLS from the first byte. `required`, `opportunistic`: by STARTTLS. */
export const MAIL_TLS = ["required", "opportunistic", "implicit", "none"] as const;

type MailTls = (typeof MAIL_TLS)[number];

export interface MailChannel {
  readonly kind: "mail";
  readonly to: readonly string[];
  readonly from: string;
  readonly host: string;
  readonly port: number;
  readonly tls: MailTls;
  readonly user: SecretSource | undefined;
  readonly password: SecretSource | undefined;
  /** PEM text: additional authorities. */
  readonly ca: string | undefined;
  readonly timeoutMs: number;
}

export interface WebhookChannel extends Receiver {
  readonly kind: "webhook";
}

/** For logs and commands. A webhook is named by its host, because the rest of its address may hold a secret. */
export function describeChannel(channel: MailChannel | WebhookChannel): string {
  if (channel.kind === "webhook") return `webhook at ${channel.url.host}`;
  const [first = "", ...others] = channel.to;
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  return `mail to ${first}${more} through ${channel.host}:${channel.port}`;
}
