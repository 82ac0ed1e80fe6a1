/** The actions of the console: the same as those of the commands, and carried out in the same way. */
import { createHash } from "node:crypto";
import { hostname } from "node:os";
import type { Clock } from "../base/clock.ts";
import { Secret, type SecretSource } from "../base/secret.ts";
import type { ConsoleActions } from "../console/port.ts";
import { Sessions, type Tokens } from "../console/sessions.ts";
import { peekLedger } from "../ledger/peek.ts";
import {
  type ActTools,
  awaitAct,
  objectionToAct,
  refuseAct,
  type SubmittedAct,
  submitAct,
  supplyPassword,
} from "./acts.ts";
import type { LiveSettings } from "./live-settings.ts";

/** The source of a token may be a command, so tokens are read no more often than this. */
const READ_EVERY_MS = 2_000;

/** `undefined` if the console is read-only. */
export async function openActions(
  live: LiveSettings,
  clock: Clock,
  stop: AbortSignal,
  runOrders: () => Promise<void>,
): Promise<ConsoleActions | undefined> {
  const { http, work, inbox } = live.now;
  if (http?.actions !== true) return undefined;
  const ledger = peekLedger({ work, inbox });
  const daemon = JSON.stringify([hostname(), http.listen, inbox]);
  const cookie = createHash("sha256").update(daemon).digest("hex").slice(0, 12);
  const needsToken = !("path" in http.listen) || http.tokens.size > 0;
  const tokens = needsToken ? await readTokens(http.tokens, stop) : undefined;
  const sessions = new Sessions({ tokens, cookie, clock });
  const toolsOf = () => actToolsOf(live);
  return {
    sessions,
    renew: needsToken
      ? createTokenReader(live, (read) => sessions.renew(read), clock, stop)
      : async () => true,
    async submit({ action, mailbox, trackingId, password = new Secret("") }, by) {
      const tools = toolsOf();
      const record = await ledger.find({ mailbox, trackingId });
      const objection = await objectionToAct(tools, action, record, password);
      if (record === undefined || objection !== undefined) {
        return { refused: refuseAct({ mailbox, trackingId }, objection, record) };
      }
      const submitted: SubmittedAct | undefined =
        action === "password"
          ? (await supplyPassword(tools, [record], by, password, false))[0]
          : await submitAct(tools, action, record, by);
      if (submitted === undefined) return { refused: refuseAct(record, undefined, record) };
      await runOrders();
      return {
        async outcome(signal) {
          const outcome = await awaitAct(toolsOf(), submitted, AbortSignal.any([signal, stop]));
          const { text, result, record: after } = outcome;
          return { text, result, state: after?.state, reason: after?.reason };
        },
      };
    },
  };
}

/** The daemon owns the folders. */
export function actToolsOf({ now: { work, inbox, state, mailboxes } }: LiveSettings): ActTools {
  return { work, inbox, state, mailboxes, asOwner: (_folder, write) => write() };
}

async function readTokens(sources: ReadonlyMap<string, SecretSource>, stop: AbortSignal): Promise<Tokens> {
  const read = [...sources].map(async ([name, source]) => [name, await source.read(stop)] as const);
  return new Map(await Promise.all(read));
}

interface Reading {
  readonly sources: ReadonlyMap<string, SecretSource>;
  readonly atMs: number;
  readonly isRead: Promise<boolean>;
}

/**
 * Returns a function that reads the tokens again from their present sources, unless that was done a moment ago. It
 * resolves to false if one cannot be read; the caller then accepts no token.
 */
function createTokenReader(
  live: LiveSettings,
  onRead: (tokens: Tokens) => void,
  clock: Clock,
  stop: AbortSignal,
): () => Promise<boolean> {
  let last: Reading | undefined;
  return async () => {
    const sources = live.now.http?.tokens ?? new Map();
    const atMs = clock.now();
    if (last?.sources !== sources || Math.abs(atMs - last.atMs) >= READ_EVERY_MS) {
      const isRead = readTokens(sources, stop).then(
        (tokens) => {
          onRead(tokens);
          return true;
        },
        () => false,
      );
      last = { sources, atMs, isRead };
    }
    return last.isRead;
  };
}
