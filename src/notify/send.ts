/** Sends one message: a mail through an SMTP server, or a POST to a webhook. */

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { hostname } from "node:os";
import type { SMTPTransportOptions } from "nodemailer";
import { MAIL_ANSWER_BYTES } from "../base/bounds.ts";
import type { Clock } from "../base/clock.ts";
import type { FaultCode } from "../base/fault-codes.ts";
import { Fault, messageOf } from "../base/faults.ts";
import { printable } from "../base/phrases.ts";
import { type Secret, scrub } from "../base/secret.ts";
import { postSigned } from "../base/signed-post.ts";
import { authoritiesWith } from "../base/trust.ts";
import type { MailChannel, WebhookChannel } from "../model/notify.ts";
import type { Message } from "./message.ts";

const MAX_DETAIL = 300;

export interface Sent {
  readonly answer: string;
  /** Some recipients are refused. The others have the mail, so it must not be sent again. */
  readonly refused?: Fault;
}

/**
 * Resolves with the receiver's answer when the message was accepted. `thread`: messages with the same one belong
 * together. Throws a fault of the notifications, `SECRET_UNREADABLE`, or `STOPPED` on the signal.
 */
export async function sendMessage(
  channel: MailChannel | WebhookChannel,
  message: Message,
  thread: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<Sent> {
  const id = randomUUID();
  if (channel.kind === "mail") return sendMail(channel, message, { id, thread }, clock, signal);
  const call = { id, body: message.body(id, channel.format), failure: "NOTIFY_WEBHOOK_FAILED" } as const;
  await postSigned(channel, call, clock, signal);
  return { answer: "accepted" };
}

function sendMail(
  channel: MailChannel,
  { subject, text }: Message,
  { id, thread }: { readonly id: string; readonly thread: string },
  clock: Clock,
  signal: AbortSignal,
): Promise<Sent> {
  const domain = channel.from.slice(channel.from.lastIndexOf("@") + 1);
  return withTransport(channel, signal, async (transport) => {
    const { response, rejected } = await transport.sendMail({
      from: { name: "", address: channel.from },
      to: channel.to.map((address) => ({ name: "", address })),
      envelope: { from: channel.from, to: [...channel.to] },
      subject,
      text,
      textEncoding: "quoted-printable",
      date: new Date(clock.now()),
      messageId: `<${id}@${domain}>`,
      references: `<${thread}@${domain}>`,
      headers: { "Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All" },
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    const answer = printable(response.slice(0, MAX_DETAIL));
    if (rejected.length === 0) return { answer };
    const detail = `it is not accepted for ${rejected.join(", ")}`;
    return { answer, refused: new Fault("MAIL_RECIPIENTS_REFUSED", { detail }) };
  });
}

/** Connects and logs in, and sends nothing. Throws as `sendMessage`. */
export function checkMailServer(channel: MailChannel, signal: AbortSignal): Promise<void> {
  return withTransport(channel, signal, async (transport) => {
    await transport.verify();
  });
}

type Transport = ReturnType<typeof import("nodemailer").createTransport>;

/** The deadline, the signal and the end of `work` destroy the connection, whatever the server does. */
async function withTransport<Result>(
  channel: MailChannel,
  signal: AbortSignal,
  work: (transport: Transport) => Promise<Result>,
): Promise<Result> {
  const timeout = AbortSignal.timeout(channel.timeoutMs);
  const either = AbortSignal.any([signal, timeout]);
  const secrets: Secret[] = [];
  const over = new AbortController();
  try {
    const [user, pass] = [await channel.user?.read(either), await channel.password?.read(either)];
    secrets.push(...[user, pass].filter((secret) => secret !== undefined));
    // Loaded only here: most commands send no mail.
    const { createTransport } = await import("nodemailer");
    const options = optionsFor(channel, user, pass);
    const ended = AbortSignal.any([either, over.signal]);
    return await work(createTransport({ ...options, getSocket: connectUntil(ended, channel) }));
  } catch (error) {
    if (signal.aborted) throw new Fault("STOPPED");
    if (timeout.aborted)
      throw new Fault("MAIL_UNREACHABLE", { detail: `no answer within ${channel.timeoutMs / 1000} s` });
    throw error instanceof Fault ? error : faultOfMail(error, channel, secrets);
  } finally {
    over.abort();
  }
}

function optionsFor(
  channel: MailChannel,
  user: Secret | undefined,
  pass: Secret | undefined,
): SMTPTransportOptions {
  const { host, port, tls, ca, timeoutMs } = channel;
  return {
    host,
    port,
    name: ehloName(),
    secure: tls === "implicit",
    requireTLS: tls === "required",
    ignoreTLS: tls === "none",
    tls: tls === "none" ? {} : authoritiesWith(ca),
    // Without `forceAuth`, a server that offers no login would get the mail anyway.
    ...(user === undefined || pass === undefined
      ? {}
      : { auth: { user: user.reveal(), pass: pass.reveal() }, forceAuth: true }),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    maxResponseSize: MAIL_ANSWER_BYTES,
    logger: false,
  };
}

/** Strict servers refuse a machine's name that is not a domain. */
function ehloName(): string {
  const name = hostname();
  return /^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$/.test(name) ? name : "[127.0.0.1]";
}

/** Our own connection, which the signal destroys. */
function connectUntil(
  signal: AbortSignal,
  { host, port }: MailChannel,
): NonNullable<SMTPTransportOptions["getSocket"]> {
  return (_options, callback) => {
    const socket = connect({ host, port, signal });
    // Later errors, and that of an abort, would otherwise end the process.
    socket.on("error", () => {});
    once(socket, "connect", { signal }).then(
      () => callback(null, { connection: socket }),
      (error: unknown) => callback(error instanceof Error ? error : new Error(String(error))),
    );
  };
}

type MailErrorKey = "code" | "originalCode" | "response";

/** By nodemailer's code. */
const CODES: Readonly<Record<string, FaultCode>> = {
  EAUTH: "MAIL_LOGIN_REFUSED",
  ENOAUTH: "MAIL_LOGIN_REFUSED",
  ETLS: "MAIL_TLS_REFUSED",
  EENVELOPE: "MAIL_REFUSED",
  EMESSAGE: "MAIL_REFUSED",
};

/** Codes of OpenSSL, and of Node's checks of certificates. */
const TLS_CODE = /^(ERR_(SSL|TLS)|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH)/;

/** The server chooses its answer, which may repeat the login. */
function faultOfMail(error: unknown, { host, port }: MailChannel, secrets: readonly Secret[]): Fault {
  const { code = "", originalCode, response } = error as Partial<Record<MailErrorKey, string>>;
  const answer = scrub(response ?? messageOf(error), secrets).trim();
  const detail = `${host}:${port}: ${printable(answer.slice(0, MAX_DETAIL))}`;
  if (TLS_CODE.test(originalCode ?? code)) return new Fault("MAIL_TLS_REFUSED", { detail });
  // A 4xx answer is temporary.
  if (/^4\d\d/.test(response ?? "")) return new Fault("MAIL_DEFERRED", { detail });
  return new Fault(CODES[code] ?? "MAIL_UNREACHABLE", { detail });
}
